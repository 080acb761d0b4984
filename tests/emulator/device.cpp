//===- device.cpp - CUDA kernels run on the host --------------------------===//

#include "tests/emulator/device.h"

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/context/fiber.hpp>
#include <boost/context/stack_context.hpp>

#include "tests/emulator/races.h"
#include "tests/emulator/stacks.h"

namespace mtplan::emulator {

namespace {

namespace ctx = boost::context;

constexpr unsigned kWarp = 32;
enum class State { ready, atBlock, atWarp, ended };

/// Describes an asynchronous copy to shared memory.
struct Copy {
  void *to;
  const void *from; ///< null: writes zeros
  std::size_t bytes;
};

struct Thread {
  ctx::fiber fiber;
  ctx::fiber *scheduler = nullptr; ///< while the thread runs
  State state = State::ready;
  Place place{};
  std::uint64_t published = 0; ///< the value of its last publish()
  std::vector<Copy> copies;
};

std::atomic<Order> order{Order::ascending};

std::atomic<bool> watching{false};
std::atomic<std::uint64_t> watched{0};

/// Holds a unit of launchedMemory(), initialised to NaN.
struct alignas(16) Unit {
  std::uint64_t words[2] = {~std::uint64_t{0}, ~std::uint64_t{0}};
  bool operator==(const Unit &) const = default;
};
/// Counts the guard units behind the memory, which no thread may write.
constexpr std::size_t kBeyond = 64;

class Block {
public:
  /// \param theAccesses  the accesses of the launch; null: accesses are not
  ///                     checked
  Block(dim3 grid, dim3 block, uint3 index,
        const std::function<void()> &theBody, std::size_t shared,
        Accesses *theAccesses)
      : body(theBody), accesses(theAccesses),
        memory((shared + sizeof(Unit) - 1) / sizeof(Unit) + kBeyond),
        threads(std::size_t{block.x} * block.y * block.z) {
    std::size_t i = 0;
    for (unsigned z = 0; z < block.z; ++z)
      for (unsigned y = 0; y < block.y; ++y)
        for (unsigned x = 0; x < block.x; ++x, ++i)
          threads[i].place = {{x, y, z}, index, block, grid};
    if (accesses)
      accesses->beginBlock(memory.data(), memory.size() * sizeof(Unit));
  }

  void run();
  Thread &current() { return *running; }
  void *launched() { return memory.data(); }
  /// Checks an access; an error ends the block.
  void touch(const void *data, std::size_t bytes, bool writes) {
    if (!accesses || fault || stacks().has(data) || isOwn(data))
      return;
    ++watched;
    if (const std::string wrong = accesses->note(
            data, bytes, writes, static_cast<int>(running - threads.data()));
        !wrong.empty())
      fail(wrong);
  }
  void fail(const std::string &what) {
    if (!fault)
      fault = std::make_exception_ptr(std::logic_error(
          "block " + std::to_string(running->place.block.x) + ": " + what));
  }
  void wait(State why) {
    Thread &mine = *running;
    mine.state = why;
    *mine.scheduler = std::move(*mine.scheduler).resume();
  }
  std::uint64_t publishedBy(unsigned lane) const {
    const std::size_t first =
        static_cast<std::size_t>(running - threads.data()) / kWarp * kWarp;
    if (lane >= kWarp || first + lane >= threads.size() ||
        threads[first + lane].state == State::ended)
      throw std::logic_error("a shuffle asks for lane " + std::to_string(lane) +
                             ", which the warp has not, or no longer");
    return threads[first + lane].published;
  }

private:
  /// Returns whether the address belongs to the emulator's own state.
  bool isOwn(const void *data) const {
    return Region::of(body).has(reinterpret_cast<std::uintptr_t>(data)) ||
           (data >= threads.data() && data < threads.data() + threads.size());
  }
  void resume(Thread &thread);
  bool release(std::size_t first, std::size_t last, State where);
  bool releaseSome();

  const std::function<void()> &body;
  Accesses *const accesses;
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
        ctx::fiber(std::allocator_arg, OfStacks(), [this](ctx::fiber &&back) {
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

// Releases threads [first, last) if all that have not ended wait at `where`.
// Returns whether any thread waited.
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
  if (some && accesses && where == State::atBlock)
    accesses->meet();
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

WatchedAccesses::WatchedAccesses() { watching = true; }
WatchedAccesses::~WatchedAccesses() { watching = false; }

std::uint64_t accessesWatched() { return watched; }

void touched(const void *data, std::size_t bytes, bool writes) {
  if (present)
    present->touch(data, bytes, writes);
}

void misplaced(const void *data) {
  if (present)
    present->fail("uses an address that is not aligned, " +
                  std::to_string(reinterpret_cast<std::uintptr_t>(data) % 16) +
                  " after a multiple of 16");
}

void synchroniseBlock() { present->wait(State::atBlock); }

void synchroniseWarp() { present->wait(State::atWarp); }

void publish(std::uint64_t bits) {
  present->current().published = bits;
  present->wait(State::atWarp);
}

std::uint64_t published(unsigned lane) { return present->publishedBy(lane); }

void beginCopy(void *to, const void *from, std::size_t bytes, bool there) {
  if (reinterpret_cast<std::uintptr_t>(to) % bytes != 0 ||
      reinterpret_cast<std::uintptr_t>(from) % bytes != 0)
    throw std::logic_error("a copy of " + std::to_string(bytes) +
                           " bytes from or to an address that is no multiple");
  touched(to, bytes, true);
  std::memset(to, 0xFF, bytes);
  present->current().copies.push_back({to, there ? from : nullptr, bytes});
}

void endCopies() {
  for (const Copy &copy : present->current().copies) {
    touched(copy.to, copy.bytes, true);
    if (copy.from) {
      touched(copy.from, copy.bytes, false);
      std::memcpy(copy.to, copy.from, copy.bytes);
    } else {
      std::memset(copy.to, 0, copy.bytes);
    }
  }
  present->current().copies.clear();
}

void *launchedMemory() { return present->launched(); }

std::atomic<std::uint64_t> &coreProducts() {
  static std::atomic<std::uint64_t> products{0};
  return products;
}

void setOrder(Order theOrder) { order = theOrder; }

void run(dim3 grid, dim3 block, const std::function<void()> &thread,
         std::size_t shared, Region arguments) {
  std::optional<Accesses> accesses;
  if (watching)
    accesses.emplace(arguments);
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x)
        Block(grid, block, {x, y, z}, thread, shared,
              accesses ? &*accesses : nullptr)
            .run();
}

bool isOfDevice(dim3 blocks, dim3 threads) {
  constexpr unsigned kThreads = 1024, kBlocksX = 0x7FFFFFFF, kBlocks = 65535;
  const std::uint64_t count = std::uint64_t{threads.x} * threads.y * threads.z;
  return count > 0 && count <= kThreads && blocks.x > 0 &&
         blocks.x <= kBlocksX && blocks.y > 0 && blocks.y <= kBlocks &&
         blocks.z > 0 && blocks.z <= kBlocks;
}

namespace {

std::mutex allowing;
/// Holds the limits of dynamic shared memory that cudaFuncSetAttribute() has
/// set, in bytes, by kernel.
std::map<const void *, std::size_t> allowed;
std::atomic<int> sharedOfDevice{kMostSharedOfAny};

} // namespace

void setSharedOfDevice(int bytes) { sharedOfDevice = bytes; }

std::size_t mostShared(const void *kernel) {
  const std::lock_guard lock(allowing);
  const auto found = allowed.find(kernel);
  return found == allowed.end() ? std::size_t{48} << 10 : found->second;
}

} // namespace mtplan::emulator

extern "C" cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attr,
                                              int /*device*/) {
  if (attr != cudaDevAttrMaxSharedMemoryPerBlockOptin)
    return cudaErrorInvalidValue;
  *value = mtplan::emulator::sharedOfDevice;
  return cudaSuccess;
}

extern "C" cudaError_t cudaFuncSetAttribute(const void *func,
                                            cudaFuncAttribute attr, int value) {
  if (attr != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
      value > mtplan::emulator::sharedOfDevice)
    return cudaErrorInvalidValue;
  const std::lock_guard lock(mtplan::emulator::allowing);
  mtplan::emulator::allowed[func] = static_cast<std::size_t>(value);
  return cudaSuccess;
}
