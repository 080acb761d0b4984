//===- stacks.h - Stacks of emulated threads --------------------*- C++ -*-===//
//
// A host thread's fiber stacks are one allocation, so that it is fast to find
// whether an address is on one of them.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_EMULATOR_STACKS_H
#define MTPLAN_TESTS_EMULATOR_STACKS_H

#include <cstddef>
#include <new>
#include <vector>

#include <sys/mman.h>

#include <boost/context/stack_context.hpp>

namespace mtplan::emulator {

/// Holds stacks for a block's threads; pages are allocated on first use.
class Stacks {
public:
  static constexpr std::size_t kBytes = 128 << 10, kMost = 1024;

  Stacks() {
    void *room = mmap(nullptr, kBytes * kMost, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
      throw std::bad_alloc();
    first = static_cast<std::byte *>(room);
    for (std::size_t i = kMost; i-- > 0;)
      free.push_back(first + i * kBytes);
  }
  ~Stacks() { munmap(first, kBytes * kMost); }
  Stacks(const Stacks &) = delete;
  Stacks &operator=(const Stacks &) = delete;

  bool has(const void *data) const {
    return data >= first && data < first + kBytes * kMost;
  }
  std::byte *take() {
    if (free.empty())
      throw std::bad_alloc();
    std::byte *const one = free.back();
    free.pop_back();
    return one;
  }
  void give(std::byte *one) { free.push_back(one); }

private:
  std::byte *first = nullptr;
  std::vector<std::byte *> free;
};

/// Returns the stacks of the calling host thread.
inline Stacks &stacks() {
  static thread_local Stacks its;
  return its;
}

/// Allocates stacks for Boost's fibers.
struct OfStacks {
  boost::context::stack_context allocate() {
    boost::context::stack_context stack;
    stack.size = Stacks::kBytes;
    stack.sp = stacks().take() + Stacks::kBytes; // Stacks grow down.
    return stack;
  }
  void deallocate(boost::context::stack_context &stack) noexcept {
    stacks().give(static_cast<std::byte *>(stack.sp) - Stacks::kBytes);
  }
};

} // namespace mtplan::emulator

#endif // MTPLAN_TESTS_EMULATOR_STACKS_H
