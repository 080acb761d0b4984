//===- device.cpp - CUDA's kernels, run on the host -----------------------===//

#include "tests/emulator/device.h"

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>

namespace mtplan::emulator {

namespace {

namespace ctx = boost::context;

constexpr unsigned kWarp = 32;
constexpr std::size_t kStackBytes = 128 << 10;

enum class State { ready, atBlock, atWarp, ended };

/// On its way to shared memory.
struct Copy {
  void *to;
  const void *from; ///< null: zeros come
  std::size_t bytes;
};

struct Thread {
  ctx::fiber fiber;
  ctx::fiber *scheduler = nullptr; ///< while the thread runs
  State state = State::ready;
  Place place{};
  std::uint64_t given = 0; ///< to the lanes of its warp
  std::vector<Copy> copies;
};

std::atomic<Order> order{Order::ascending};

ctx::pooled_fixedsize_stack &stacks() {
  static thread_local ctx::pooled_fixedsize_stack pool(kStackBytes);
  return pool;
}

/// Of launchedMemory; as it is before a kernel writes, no numbers.
struct alignas(16) Unit {
  std::uint64_t words[2] = {~std::uint64_t{0}, ~std::uint64_t{0}};
  bool operator==(const Unit &) const = default;
};
constexpr std::size_t kBeyond = 64; ///< units that nobody may write

class Block {
public:
  Block(dim3 grid, dim3 block, uint3 index,
        const std::function<void()> &theBody, std::size_t shared)
      : body(theBody),
        memory((shared + sizeof(Unit) - 1) / sizeof(Unit) + kBeyond),
        threads(std::size_t{block.x} * block.y * block.z) {
    std::size_t i = 0;
    for (unsigned z = 0; z < block.z; ++z)
      for (unsigned y = 0; y < block.y; ++y)
        for (unsigned x = 0; x < block.x; ++x, ++i)
          threads[i].place = {{x, y, z}, index, block, grid};
  }

  void run();
  Thread &current() { return *running; }
  void *launched() { return memory.data(); }
  void wait(State why) {
    Thread &mine = *running;
    mine.state = why;
    *mine.scheduler = std::move(*mine.scheduler).resume();
  }
  std::uint64_t givenBy(unsigned lane) const {
    const std::size_t first =
        static_cast<std::size_t>(running - threads.data()) / kWarp * kWarp;
    if (lane >= kWarp || first + lane >= threads.size() ||
        threads[first + lane].state == State::ended)
      throw std::logic_error("a shuffle asks for lane " + std::to_string(lane) +
                             ", which the warp has not, or no longer");
    return threads[first + lane].given;
  }

private:
  void resume(Thread &thread);
  bool release(std::size_t first, std::size_t last, State where);
  bool releaseSome();

  const std::function<void()> &body;
  std::vector<Unit> memory;
  std::vector<Thread> threads;
  Thread *running = nullptr;
  std::exception_ptr fault;
};

thread_local Block *present = nullptr;

void Block::resume(Thread &thread) {
  running = &thread;
  if (!thread.fiber)
    thread.fiber =
        ctx::fiber(std::allocator_arg, stacks(), [this](ctx::fiber &&back) {
          Thread &mine = *running;
          mine.scheduler = &back;
          try {
            body();
          } catch (const ctx::detail::forced_unwind &) {
            throw;
          } catch (...) {
            if (!fault)
              fault = std::current_exception();
          }
          mine.state = State::ended;
          return std::move(back);
        });
  thread.fiber = std::move(thread.fiber).resume();
}

// If all that have not ended wait there, and somebody does.
bool Block::release(std::size_t first, std::size_t last, State where) {
  bool some = false;
  for (std::size_t i = first; i < last; ++i) {
    if (threads[i].state == where)
      some = true;
    else if (threads[i].state != State::ended)
      return false;
  }
  for (std::size_t i = first; some && i < last; ++i)
    if (threads[i].state == where)
      threads[i].state = State::ready;
  return some;
}

bool Block::releaseSome() {
  bool some = false;
  for (std::size_t i = 0; i < threads.size(); i += kWarp)
    some |= release(i, std::min(i + kWarp, threads.size()), State::atWarp);
  return some || release(0, threads.size(), State::atBlock);
}

void Block::run() {
  present = this;
  do {
    const std::size_t count = threads.size();
    for (std::size_t i = 0; i < count && !fault; ++i) {
      Thread &thread = threads[order == Order::ascending ? i : count - 1 - i];
      if (thread.state == State::ready)
        resume(thread);
    }
  } while (!fault && releaseSome());
  present = nullptr;
  if (fault)
    std::rethrow_exception(fault);
  if (std::count(memory.end() - kBeyond, memory.end(), Unit{}) != kBeyond)
    throw std::logic_error("a block writes beyond the memory it asked for");
  for (const Thread &thread : threads)
    if (thread.state != State::ended)
      throw std::logic_error(
          "thread " + std::to_string(thread.place.thread.x) + " of block " +
          std::to_string(thread.place.block.x) + " waits at a " +
          (thread.state == State::atWarp ? "shuffle or barrier of a warp"
                                         : "barrier") +
          " that others of its " +
          (thread.state == State::atWarp ? "warp" : "block") +
          " do not come to");
}

} // namespace

const Place &here() { return present->current().place; }

void synchroniseBlock() { present->wait(State::atBlock); }

void synchroniseWarp() { present->wait(State::atWarp); }

void give(std::uint64_t bits) {
  present->current().given = bits;
  present->wait(State::atWarp);
}

std::uint64_t given(unsigned lane) { return present->givenBy(lane); }

void beginCopy(void *to, const void *from, std::size_t bytes, bool there) {
  if (reinterpret_cast<std::uintptr_t>(to) % bytes != 0 ||
      reinterpret_cast<std::uintptr_t>(from) % bytes != 0)
    throw std::logic_error("a copy of " + std::to_string(bytes) +
                           " bytes from or to an address that is no multiple");
  std::memset(to, 0xFF, bytes);
  present->current().copies.push_back({to, there ? from : nullptr, bytes});
}

void endCopies() {
  for (const Copy &copy : present->current().copies)
    if (copy.from)
      std::memcpy(copy.to, copy.from, copy.bytes);
    else
      std::memset(copy.to, 0, copy.bytes);
  present->current().copies.clear();
}

void *launchedMemory() { return present->launched(); }

std::atomic<std::uint64_t> &coreProducts() {
  static std::atomic<std::uint64_t> products{0};
  return products;
}

void setOrder(Order theOrder) { order = theOrder; }

void run(dim3 grid, dim3 block, const std::function<void()> &thread,
         std::size_t shared) {
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x)
        Block(grid, block, {x, y, z}, thread, shared).run();
}

namespace {

std::mutex allowing;
std::map<const void *, std::size_t> allowed; ///< by kernel

} // namespace

std::size_t mostShared(const void *kernel) {
  const std::lock_guard lock(allowing);
  const auto found = allowed.find(kernel);
  return found == allowed.end() ? std::size_t{48} << 10 : found->second;
}

} // namespace mtplan::emulator

extern "C" cudaError_t cudaFuncSetAttribute(const void *func,
                                            cudaFuncAttribute attr, int value) {
  constexpr int kOfDevice = 227 << 10; // compute capability 9.0
  if (attr != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
      value > kOfDevice)
    return cudaErrorInvalidValue;
  const std::lock_guard lock(mtplan::emulator::allowing);
  mtplan::emulator::allowed[func] = static_cast<std::size_t>(value);
  return cudaSuccess;
}
