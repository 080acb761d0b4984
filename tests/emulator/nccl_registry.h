//===- nccl_registry.h - Memory that NCCL knows -----------------*- C++ -*-===//
//
// What was allocated by ncclMemAlloc, and which communicators have it
// registered. The library forgives some of what is noted here as misuse, and
// some it does not notice until it is too late.
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

/// Of the whole process.
class NcclRegistry {
public:
  ncclResult_t allocate(void **data, std::size_t bytes);
  ncclResult_t free(void *data);
  /// \param comm  lives, and was not finalised
  ncclResult_t enter(ncclComm_t comm, const void *data, std::size_t bytes,
                     void **handle);
  ncclResult_t leave(ncclComm_t comm, void *handle);
  /// What a call of the communicator reads and writes.
  void see(ncclComm_t comm, bool isTransfer,
           const std::vector<Touched> &touched);
  /// Calls of a rank that are made together.
  void seeTogether(const std::vector<Operation> &operations, int rank,
                   int ranks);
  /// The communicator goes. If it is not aborted, nothing may be left of it.
  void end(ncclComm_t comm, bool aborted);
  void misuse(const std::string &what);

  std::mutex mutex;                          ///< of what follows
  std::set<int> unallocating, unregistering; ///< devices
  std::vector<std::string> misuses;
  NcclUse use;
  struct Piece {
    std::size_t bytes = 0;
    int device = 0;
  };
  std::map<const std::byte *, Piece> pieces;

private:
  struct Member {
    std::map<const std::byte *, std::size_t> ranges; ///< their sizes
    int known = 0, unknown = 0;                      ///< collectives
  };
  std::map<ncclComm_t, Member> members;
};

NcclRegistry &ncclRegistry();

/// Whether it lives and was not finalised.
bool isNcclOpen(ncclComm_t comm);

} // namespace mtplan::emulator

#endif // MTPLAN_TESTS_EMULATOR_NCCL_REGISTRY_H
