//===- races.h - Data races of kernels --------------------------*- C++ -*-===//
//
// Checks the memory accesses of kernels, which the compiler instruments as for
// ThreadSanitizer. Two threads of a block that access the same memory, at least
// one of them writing, need a barrier between them; two blocks of a launch must
// not do so at all. Also, shared memory is written before it is read, other
// memory is the device's or pinned, and addresses are aligned.
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

/// While an object exists, faulty accesses end the kernels of this process.
struct WatchedAccesses {
  WatchedAccesses();
  ~WatchedAccesses();
  WatchedAccesses(const WatchedAccesses &) = delete;
  WatchedAccesses &operator=(const WatchedAccesses &) = delete;
};
/// Notes an access by the running thread of a block, if there is one.
void touched(const void *data, std::size_t bytes, bool writes);
/// Notes an access to a misaligned address.
void misplaced(const void *data);
/// Returns the number of checked accesses so far.
std::uint64_t accessesWatched();

/// The accesses of one launch, whose blocks run one after another.
class Accesses {
public:
  /// \param theArguments  of the kernel; empty: all host memory is allowed
  explicit Accesses(Region theArguments) : arguments(theArguments) {}

  /// Begins a block. \param memory  its dynamic shared memory
  void beginBlock(const void *memory, std::size_t bytes);
  /// Notes that all threads of the block passed a barrier.
  void meet() { ++meeting; }
  /// Notes an access by a thread. Returns an error, or "".
  std::string note(const void *data, std::size_t bytes, bool writes,
                   int thread);

private:
  /// The last accesses since a barrier.
  struct Touched {
    std::uint64_t when = 0;
    int writer = -1;
    std::array<int, 2> readers{-1, -1};

    /// Adds an access. Returns a thread or block that it races with, or -1.
    int add(std::uint64_t now, int who, bool writes);
  };
  struct Place {
    Touched byThreads, byBlocks;
    std::uint64_t writtenIn = 0; ///< number of the block, from 1
  };

  bool isShared(std::uintptr_t address) const;
  bool isReached(std::uintptr_t address);

  std::unordered_map<std::uintptr_t, Place> places; ///< units of two bytes
  std::uint64_t block = 0, meeting = 0;
  const Region arguments;
  Region shared; ///< dynamic shared memory of the block
  Region known;  ///< allocation of the last access
};

/// Returns the device or pinned allocation that contains the address, or an
/// empty region.
Region regionOf(std::uintptr_t address);
/// Returns the thread-local storage that holds __shared__ variables.
Region declaredShared();

} // namespace mtplan::emulator

#endif // MTPLAN_TESTS_EMULATOR_RACES_H
