//===- nccl.cpp - NCCL emulated on the host -------------------------------===//

#include "tests/emulator/nccl.h"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nccl.h>

#include "tests/emulator/in_flight.h"
#include "tests/emulator/nccl_clique.h"
#include "tests/emulator/nccl_registry.h"
#include "tests/emulator/streams.h"

using namespace mtplan::emulator;

/// Holds the state of a rank's communicator.
struct ncclComm {
  std::shared_ptr<Clique> clique;
  int rank = 0, device = 0;
  bool blocks = true;
  bool refused = false; ///< initialisation failed
  bool aborted = false, finalised = false;
  /// These count the calls so far, including those of launched graphs.
  std::uint64_t collectives = 0;
  std::map<int, std::uint64_t> sends, receives; ///< by peer
  std::set<Kind> called;
  /// Holds tokens of queued work and graphs; each expires with its owner.
  std::vector<std::weak_ptr<char>> held;
  std::uint64_t launches = 0, completed = 0;
  /// Holds the calls of a non-blocking communicator that ncclCommGetAsyncError
  /// has yet to queue.
  std::vector<std::function<void()>> waiting;
  bool queueing = false; ///< a thread is queueing `waiting`
};

namespace mtplan::emulator {
namespace {

using Comm = std::shared_ptr<ncclComm>;

/// Guards the variables below. Running work locks the mutex, so that work must
/// not be queued under the lock.
std::mutex mutex;
std::condition_variable changed;
std::map<std::string, std::shared_ptr<Clique>> cliques; ///< by unique IDs
std::map<ncclComm_t, Comm> alive;
std::uint64_t ids = 0;
std::set<int> failing, stalled, silent, broken; ///< devices
int libraryVersion = NCCL_VERSION_CODE;
int launches = 0;

/// Runs `action` without the lock.
void outside(std::unique_lock<std::mutex> &lock,
             const std::function<void()> &action) {
  lock.unlock();
  action();
  lock.lock();
}

/// Returns the device's work for grouped operations of a communicator. The work
/// notes the rank's arrival, then waits until the other ranks have arrived.
Polled workOf(const Comm &comm, const std::vector<Operation> &operations) {
  const std::lock_guard lock(mutex);
  auto all = std::make_shared<std::vector<Numbered>>();
  for (const Operation &operation : operations) {
    std::uint64_t &next =
        operation.kind == Kind::send      ? comm->sends[operation.peer]
        : operation.kind == Kind::receive ? comm->receives[operation.peer]
                                          : comm->collectives;
    all->push_back({operation, next++});
  }
  return [comm, all, number = comm->launches++, arrived = false]() mutable {
    const std::lock_guard held(mutex);
    if (comm->aborted)
      return true;
    if (!arrived) {
      if (comm->completed != number || silent.contains(comm->device))
        return false;
      for (const Numbered &one : *all)
        comm->clique->arrive(comm->rank, one);
      arrived = true;
    }
    for (const Numbered &one : *all)
      if (!comm->clique->isReady(comm->rank, one))
        return false;
    // Grouped calls have no order. The reverse order exposes code that depends
    // on the order.
    for (auto one = all->rbegin(); one != all->rend(); ++one)
      comm->clique->complete(comm->rank, *one);
    ++comm->completed;
    return true;
  };
}

/// Returns false if this is the rank's first call of a kind, which allocates
/// for connections, and allocation is forbidden now (in_flight.h).
bool mayConnect(ncclComm &comm, const std::vector<Operation> &operations,
                std::unique_lock<std::mutex> &lock) {
  bool isNew = false, may = true;
  for (const Operation &one : operations)
    isNew |= comm.called.insert(one.kind).second;
  if (isNew)
    outside(lock, [&] {
      may = whyNoMemoryNow("a first call of NCCL") == cudaSuccess;
    });
  return may;
}

void launch(const Comm &comm, const std::vector<Operation> &operations,
            cudaStream_t stream, std::unique_lock<std::mutex> &lock) {
  const auto hold = std::make_shared<char>();
  std::erase_if(comm->held, [](const auto &one) { return one.expired(); });
  comm->held.push_back(hold);
  const auto queue = [comm, operations, stream, hold] {
    enqueuePolled(
        stream, [comm, operations, hold] { return workOf(comm, operations); });
  };
  if (!comm->blocks)
    comm->waiting.push_back(queue);
  else
    outside(lock, queue);
}

/// Returns whether all ranks that the operations involve have made their first
/// call, which connects them.
bool areConnected(const ncclComm &comm,
                  const std::vector<Operation> &operations) {
  const Clique &clique = *comm.clique;
  return clique.aborted ||
         std::ranges::all_of(operations, [&](const Operation &one) {
           if (one.kind == Kind::send || one.kind == Kind::receive)
             return clique.launched[one.peer] > 0;
           return std::ranges::all_of(clique.launched,
                                      [](int n) { return n > 0; });
         });
}

/// Returns whether streams or graphs still have calls of the communicator.
bool isHeld(const ncclComm &comm) {
  return std::ranges::any_of(comm.held,
                             [](const auto &one) { return !one.expired(); });
}

/// Runs queued work until no stream or graph has calls of the communicator.
/// NCCL also waits until then.
void awaitGraphs(const ncclComm &comm, std::unique_lock<std::mutex> &lock) {
  while (isHeld(comm)) {
    outside(lock, advance);
    changed.wait_for(lock, std::chrono::milliseconds(1));
  }
}

/// Identifies a launch: grouped calls with equal targets are one launch.
struct LaunchTarget {
  Comm comm;
  cudaStream_t stream = nullptr;
  unsigned long long capture = 0; ///< 0: not captured
  bool operator==(const LaunchTarget &) const = default;
};

/// Holds the calls of this thread between ncclGroupStart and ncclGroupEnd.
struct OpenGroup {
  int depth = 0;
  std::vector<std::pair<LaunchTarget, Operation>> operations;
  std::vector<Comm> made;
};
thread_local OpenGroup openGroup;

ncclResult_t stateOf(ncclComm &comm) {
  if (comm.refused)
    return ncclSystemError;
  if (broken.contains(comm.device))
    return ncclRemoteError;
  const Clique &clique = *comm.clique;
  if (clique.joined < clique.size() || stalled.contains(comm.device))
    return ncclInProgress;
  // If two ranks share a device, every rank gets ncclInvalidUsage.
  for (int rank = 0; rank < clique.size(); ++rank)
    for (int other = 0; other < rank; ++other)
      if (clique.devices[rank] == clique.devices[other])
        return ncclInvalidUsage;
  if (!comm.waiting.empty()) {
    if (std::ranges::any_of(clique.launched, [](int n) { return n == 0; }))
      return ncclInProgress;
  }
  if (comm.finalised && (isHeld(comm) || clique.finalised < clique.size()))
    return ncclInProgress;
  return ncclSuccess;
}

ncclResult_t flush(std::unique_lock<std::mutex> &lock) {
  OpenGroup all = std::exchange(openGroup, {});
  for (const auto &[one, its] : all.operations)
    for (const auto &[other, of] : all.operations)
      if (one.comm == other.comm && one.capture != other.capture)
        return ncclInvalidUsage; // All calls must be in one capture, or none.
  // Calls of one communicator and stream are one launch. The launches are in
  // the order of their first calls.
  while (!all.operations.empty()) {
    const LaunchTarget where = all.operations.front().first;
    std::vector<Operation> those;
    std::erase_if(all.operations, [&](const auto &one) {
      if (one.first == where)
        those.push_back(one.second);
      return one.first == where;
    });
    const Comm &comm = where.comm;
    ++launches;
    ncclRegistry().seeTogether(those, comm->rank, comm->clique->size());
    if (!mayConnect(*comm, those, lock))
      return ncclUnhandledCudaError;
    ++comm->clique->launched[comm->rank];
    changed.notify_all();
    if (comm->blocks)
      changed.wait(lock, [&] { return areConnected(*comm, those); });
    launch(comm, those, where.stream, lock);
  }
  ncclResult_t result = ncclSuccess;
  for (const Comm &comm : all.made)
    if (comm->blocks) {
      changed.wait(lock, [&] { return stateOf(*comm) != ncclInProgress; });
      result = std::max(result, stateOf(*comm));
    } else if (result == ncclSuccess)
      result = ncclInProgress;
  return result;
}

} // namespace

ncclResult_t callNccl(ncclComm_t handle, cudaStream_t stream,
                      const Operation &operation) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long capture = 0;
  cudaStreamGetCaptureInfo(stream, &status, &capture, nullptr, nullptr, nullptr,
                           nullptr);
  std::unique_lock lock(mutex);
  const auto found = alive.find(handle);
  if (found == alive.end())
    return ncclInvalidArgument;
  const Comm comm = found->second;
  if (comm->finalised || !comm->waiting.empty() ||
      comm->clique->joined < comm->clique->size())
    return ncclInvalidUsage;
  ncclRegistry().see(handle, operation.isTransfer(),
                     touchedBy(operation, comm->rank, comm->clique->size()));
  openGroup.operations.push_back({{comm, stream, capture}, operation});
  if (openGroup.depth > 0)
    return ncclSuccess;
  if (const ncclResult_t result = flush(lock); result != ncclSuccess)
    return result;
  const bool goes = comm->waiting.empty();
  changed.notify_all();
  return goes ? ncclSuccess : ncclInProgress;
}

NcclFaults::~NcclFaults() {
  {
    const std::lock_guard lock(mutex);
    for (std::set<int> *one : {&failing, &stalled, &silent, &broken})
      one->clear();
    libraryVersion = NCCL_VERSION_CODE;
  }
  {
    const std::lock_guard lock(ncclRegistry().mutex);
    ncclRegistry().unallocating.clear();
    ncclRegistry().unregistering.clear();
  }
  changed.notify_all();
}

void NcclFaults::setVersion(int version) {
  const std::lock_guard lock(mutex);
  libraryVersion = version;
}
void NcclFaults::failInit(int device) {
  const std::lock_guard lock(mutex);
  failing.insert(device);
}
void NcclFaults::stallInit(int device) {
  const std::lock_guard lock(mutex);
  stalled.insert(device);
}
void NcclFaults::silence(int device) {
  const std::lock_guard lock(mutex);
  silent.insert(device);
}
void NcclFaults::breakDown(int device) {
  const std::lock_guard lock(mutex);
  broken.insert(device);
}

bool isNcclOpen(ncclComm_t comm) {
  const std::lock_guard lock(mutex);
  const auto found = alive.find(comm);
  return found != alive.end() && !found->second->finalised;
}

int takeNcclLaunches() {
  const std::lock_guard lock(mutex);
  return std::exchange(launches, 0);
}

int ncclCommunicators() {
  const std::lock_guard lock(mutex);
  return static_cast<int>(alive.size());
}

} // namespace mtplan::emulator

// Parameters have the names of the library's header.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {

const char *ncclGetErrorString(ncclResult_t result) {
  switch (result) {
  case ncclSuccess:
    return "no error";
  case ncclUnhandledCudaError:
    return "unhandled cuda error";
  case ncclSystemError:
    return "unhandled system error";
  case ncclInvalidArgument:
    return "invalid argument";
  case ncclInvalidUsage:
    return "invalid usage";
  case ncclRemoteError:
    return "remote process exited or there was a network error";
  case ncclInProgress:
    return "NCCL operation in progress";
  default:
    return "another error";
  }
}
const char *ncclGetLastError(ncclComm_t /*comm*/) {
  return "emulated: the last error";
}

ncclResult_t ncclGetVersion(int *version) {
  const std::lock_guard lock(mutex);
  *version = libraryVersion;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *uniqueId) {
  const std::lock_guard lock(mutex);
  *uniqueId = {};
  ++ids;
  std::memcpy(uniqueId->internal, &ids, sizeof(ids));
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankScalable(ncclComm_t *newcomm, int nranks,
                                      int myrank, int nId,
                                      ncclUniqueId *commIds,
                                      ncclConfig_t *config) {
  if (nranks < 1 || myrank < 0 || myrank >= nranks || nId < 1 || nId > nranks)
    return ncclInvalidArgument;
  if (whyNoMemoryNow("ncclCommInitRank") != cudaSuccess)
    return ncclUnhandledCudaError;
  const std::string key(reinterpret_cast<const char *>(commIds),
                        sizeof(ncclUniqueId) * nId);
  auto comm = std::make_shared<ncclComm>();
  cudaGetDevice(&comm->device);
  comm->rank = myrank;
  comm->blocks = !config || config->blocking != 0;
  std::unique_lock lock(mutex);
  auto &clique = cliques[key];
  if (!clique)
    clique = std::make_shared<Clique>(nranks);
  if (clique->size() != nranks || clique->devices[myrank] >= 0)
    return ncclInvalidArgument;
  clique->devices[myrank] = comm->device;
  comm->clique = clique;
  comm->refused = failing.contains(comm->device);
  if (!comm->refused)
    ++clique->joined;
  if (clique->joined == nranks)
    cliques.erase(key);
  *newcomm = comm.get();
  alive[comm.get()] = comm;
  changed.notify_all();
  openGroup.made.push_back(comm);
  return openGroup.depth > 0 ? ncclSuccess : flush(lock);
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks,
                                    ncclUniqueId commId, int rank,
                                    ncclConfig_t *config) {
  return ncclCommInitRankScalable(comm, nranks, rank, 1, &commId, config);
}
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId commId,
                              int rank) {
  return ncclCommInitRankScalable(comm, nranks, rank, 1, &commId, nullptr);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError) {
  std::unique_lock lock(mutex);
  const auto found = alive.find(comm);
  if (found == alive.end())
    return ncclInvalidArgument;
  const Comm its = found->second;
  *asyncError = stateOf(*its);
  if (*asyncError != ncclSuccess || its->waiting.empty())
    return ncclSuccess;
  // While this thread queues the calls, other threads get ncclInProgress.
  if (std::exchange(its->queueing, true)) {
    *asyncError = ncclInProgress;
    return ncclSuccess;
  }
  for (const auto &queue : std::vector(its->waiting))
    outside(lock, queue);
  its->waiting.clear();
  its->queueing = false;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  std::unique_lock lock(mutex);
  const auto found = alive.find(comm);
  if (found == alive.end() || found->second->finalised ||
      !found->second->waiting.empty())
    return ncclInvalidUsage;
  const Comm its = found->second;
  its->finalised = true;
  ++its->clique->finalised;
  changed.notify_all();
  return its->blocks ? ncclSuccess : ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  std::unique_lock lock(mutex);
  const auto found = alive.find(comm);
  if (found == alive.end())
    return ncclInvalidArgument;
  const Comm its = found->second;
  alive.erase(found);
  awaitGraphs(*its, lock);
  ncclRegistry().end(comm, false);
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  std::unique_lock lock(mutex);
  const auto found = alive.find(comm);
  if (found == alive.end())
    return ncclInvalidArgument;
  const Comm its = found->second;
  its->aborted = its->clique->aborted = true;
  alive.erase(found);
  its->waiting.clear();
  changed.notify_all();
  awaitGraphs(*its, lock);
  ncclRegistry().end(comm, true);
  return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count) {
  *count = comm->clique->size();
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank) {
  *rank = comm->rank;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++openGroup.depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (openGroup.depth == 0)
    return ncclInvalidUsage;
  if (--openGroup.depth > 0)
    return ncclSuccess;
  std::unique_lock lock(mutex);
  const auto calls = openGroup.operations;
  const ncclResult_t result = flush(lock);
  changed.notify_all();
  const bool waits = std::ranges::any_of(
      calls, [](const auto &one) { return !one.first.comm->waiting.empty(); });
  return result == ncclSuccess && waits ? ncclInProgress : result;
}

} // extern "C"
// NOLINTEND(readability-identifier-naming)
