//===- races.h - Threads that touch the same memory -------------*- C++ -*-===//
//
// The compiler tells of every access of a kernel's source to memory, as it does
// for sanitizers; who hears of it is here. Two threads of a block that touch
// the same memory, one of which writes, need a barrier of the block between
// them; two blocks of a launch must not at all. Beside these, what a block
// shares is written before it is read, memory is a device's or pinned, and
// addresses are such as the types want.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_EMULATOR_RACES_H
#define MTPLAN_TESTS_EMULATOR_RACES_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

namespace mtplan::emulator {

struct Region {
  std::uintptr_t from = 0, to = 0;

  template <typename T> static Region of(const T &what) {
    const auto first = reinterpret_cast<std::uintptr_t>(&what);
    return {first, first + sizeof(what)};
  }
  bool has(std::uintptr_t address) const {
    return address >= from && address < to;
  }
};

/// While there is one, of kernels of this process: such faults end them.
struct WatchedAccesses {
  WatchedAccesses();
  ~WatchedAccesses();
  WatchedAccesses(const WatchedAccesses &) = delete;
  WatchedAccesses &operator=(const WatchedAccesses &) = delete;
};
/// By the thread of a block that runs, if there is one.
void touched(const void *data, std::size_t bytes, bool writes);
/// As what it is not aligned for.
void misplaced(const void *data);
/// How many so far.
std::uint64_t accessesWatched();

/// What is known of the accesses of one launch. One block runs at a time.
class Accesses {
public:
  /// \param theArguments  of the kernel; none: it may touch what it likes
  explicit Accesses(Region theArguments) : arguments(theArguments) {}

  /// \param memory  of the block, beside what its kernel declares
  void beginBlock(const void *memory, std::size_t bytes);
  /// Threads of the block have met.
  void meet() { ++meeting; }
  /// By a thread of the block. "": there is nothing wrong with it.
  std::string note(const void *data, std::size_t bytes, bool writes,
                   int thread);

private:
  /// Who touched it last, of those that nothing keeps apart.
  struct Touched {
    std::uint64_t when = 0;
    int writer = -1;
    std::array<int, 2> readers{-1, -1};

    /// Whom the access of `who` clashes with, or -1.
    int add(std::uint64_t now, int who, bool writes);
  };
  struct Place {
    Touched byThreads, byBlocks;
    std::uint64_t writtenIn = 0; ///< block, counted from 1
  };

  bool isShared(std::uintptr_t address) const;
  bool isReached(std::uintptr_t address);

  std::unordered_map<std::uintptr_t, Place> places; ///< two bytes each
  std::uint64_t block = 0, meeting = 0;
  const Region arguments;
  Region shared; ///< of the block, beside what its kernel declares
  Region known;  ///< where the last access was
};

/// Of the memory that a device sees: its own, or what is pinned. Empty: the
/// address is elsewhere.
Region regionOf(std::uintptr_t address);
/// Of what kernels declare to be shared, which is the calling thread's.
Region declaredShared();

} // namespace mtplan::emulator

#endif // MTPLAN_TESTS_EMULATOR_RACES_H
