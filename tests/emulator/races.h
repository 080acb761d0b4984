//===- races.h - Data races of kernels --------------------------*- C++ -*-===//
//
// Checks the memory accesses of kernels, which the compiler instruments as for
// ThreadSanitizer. If two threads of a block access the same memory and one of
// them writes, a barrier must be between the accesses. Two blocks of a launch
// must not make such accesses. Shared memory must be written before it is read,
// other memory must be device or pinned memory, and addresses must be aligned.
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

/// While an object exists, accesses in this process are checked, and a faulty
/// access ends its kernel with an error.
struct WatchedAccesses {
  WatchedAccesses();
  ~WatchedAccesses();
  WatchedAccesses(const WatchedAccesses &) = delete;
  WatchedAccesses &operator=(const WatchedAccesses &) = delete;
};
/// Notes an access by the emulated thread that runs; does nothing if none runs.
void touched(const void *data, std::size_t bytes, bool writes);
/// Notes an access to a misaligned address by the emulated thread that runs.
void misplaced(const void *data);
/// Returns the number of checked accesses so far.
std::uint64_t accessesWatched();

/// Records the accesses of one launch, whose blocks run one after another.
class Accesses {
public:
  /// \param theArguments  memory of the kernel's arguments; empty: threads may
  ///                      access all host memory
  explicit Accesses(Region theArguments) : arguments(theArguments) {}

  /// Begins a block whose dynamic shared memory is `bytes` bytes at `memory`.
  void beginBlock(const void *memory, std::size_t bytes);
  /// Notes that all threads of the block passed a barrier.
  void meet() { ++meeting; }
  /// Notes an access by the block's thread number `thread`. Returns an error,
  /// or "".
  std::string note(const void *data, std::size_t bytes, bool writes,
                   int thread);

private:
  /// Holds the threads, or the blocks, that accessed a unit of memory since
  /// moment `when`.
  struct Touched {
    std::uint64_t when = 0;
    int writer = -1;
    std::array<int, 2> readers{-1, -1};

    /// Adds an access by thread or block `who`, and forgets accesses before
    /// moment `now`. Returns a thread or block that `who` races with, or -1.
    int add(std::uint64_t now, int who, bool writes);
  };
  struct Place {
    Touched byThreads, byBlocks;
    std::uint64_t writtenIn = 0; ///< last block that wrote it, from 1
  };

  bool isShared(std::uintptr_t address) const;
  bool isReached(std::uintptr_t address);

  /// Holds the accesses of each unit of memory, by address / 2.
  std::unordered_map<std::uintptr_t, Place> places;
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
