//===- nccl_registry.h - Memory registered with NCCL ------------*- C++ -*-===//
//
// Tracks allocations of ncclMemAlloc and their registrations by communicators.
// Reports misuse that the library tolerates or detects too late.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_EMULATOR_NCCL_REGISTRY_H
#define MTPLAN_TESTS_EMULATOR_NCCL_REGISTRY_H

#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <nccl.h>

#include "tests/emulator/nccl.h"
#include "tests/emulator/nccl_clique.h"

namespace mtplan::emulator {

/// Holds the registrations of the process.
class NcclRegistry {
public:
  ncclResult_t allocate(void **data, std::size_t bytes);
  ncclResult_t free(void *data);
  /// Registers memory. The communicator must be open (isNcclOpen()).
  ncclResult_t enter(ncclComm_t comm, const void *data, std::size_t bytes,
                     void **handle);
  ncclResult_t leave(ncclComm_t comm, void *handle);
  /// Counts a call of the communicator by whether all memory that it accesses
  /// is registered.
  void see(ncclComm_t comm, bool isTransfer,
           const std::vector<Touched> &touched);
  /// Checks grouped calls of a rank for overlapping memory.
  void seeTogether(const std::vector<Operation> &operations, int rank,
                   int ranks);
  /// Ends a communicator, which must have no registrations unless aborted.
  void end(ncclComm_t comm, bool aborted);
  void misuse(const std::string &what);

  std::mutex mutex; ///< guards the members below
  /// Allocation or registration fails on these devices.
  std::set<int> unallocating, unregistering;
  std::vector<std::string> misuses;
  NcclUse use;
  struct Piece {
    std::size_t bytes = 0;
    int device = 0;
  };
  std::map<const std::byte *, Piece> pieces;

private:
  struct Member {
    std::map<const std::byte *, std::size_t> ranges; ///< bytes, by address
    /// `known` counts collectives on registered memory, `unknown` the others.
    int known = 0, unknown = 0;
  };
  std::map<ncclComm_t, Member> members;
};

NcclRegistry &ncclRegistry();

/// Returns whether the communicator is neither destroyed nor finalised.
bool isNcclOpen(ncclComm_t comm);

} // namespace mtplan::emulator

#endif // MTPLAN_TESTS_EMULATOR_NCCL_REGISTRY_H
