//===- device.cpp - CUDA's kernels, run on the host -----------------------===//

#include "tests/emulator/device.h"

#include <atomic>
#include <exception>
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

struct Thread {
  ctx::fiber fiber;
  ctx::fiber *scheduler = nullptr; ///< while the thread runs
  State state = State::ready;
  Place place{};
  std::uint64_t given = 0; ///< to the lanes of its warp
};

std::atomic<Order> order{Order::ascending};

ctx::pooled_fixedsize_stack &stacks() {
  static thread_local ctx::pooled_fixedsize_stack pool(kStackBytes);
  return pool;
}

class Block {
public:
  Block(dim3 grid, dim3 block, uint3 index,
        const std::function<void()> &theBody)
      : body(theBody), threads(std::size_t{block.x} * block.y * block.z) {
    std::size_t i = 0;
    for (unsigned z = 0; z < block.z; ++z)
      for (unsigned y = 0; y < block.y; ++y)
        for (unsigned x = 0; x < block.x; ++x, ++i)
          threads[i].place = {{x, y, z}, index, block, grid};
  }

  void run();
  Thread &current() { return *running; }
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

std::uint64_t shuffle(std::uint64_t bits, unsigned lane) {
  present->current().given = bits;
  present->wait(State::atWarp);
  const std::uint64_t taken = present->givenBy(lane);
  // Nobody gives anew before all have taken.
  present->wait(State::atWarp);
  return taken;
}

void setOrder(Order theOrder) { order = theOrder; }

void run(dim3 grid, dim3 block, const std::function<void()> &thread) {
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x)
        Block(grid, block, {x, y, z}, thread).run();
}

} // namespace mtplan::emulator
