//===- nccl.h - NCCL emulated, with injected failures -----------*- C++ -*-===//
//
// nccl.cpp implements NCCL for ranks that are threads of one process, each with
// its own device (cudaSetDevice, setDevices in streams.h). Operations run in
// stream order and, within a communicator, in call order, once all partners
// have arrived on their devices. A send ends when its receive ends. Mismatched
// calls wait forever, as in NCCL. Results have the bits of the host transports
// (runtime/communicator/reduce.h).
//
// A non-blocking communicator returns ncclInProgress during initialisation, and
// after its first call until every rank has made a first call. Its calls are
// queued when ncclCommGetAsyncError no longer returns ncclInProgress. Captured
// calls run when their graph is launched, in the order of capture. Grouped
// calls have no order; all of them are captured, or none. Destroying or
// aborting a communicator waits until the graphs that use it are destroyed.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_EMULATOR_NCCL_H
#define MTPLAN_TESTS_EMULATOR_NCCL_H

#include <ostream>
#include <string>
#include <vector>

namespace mtplan::emulator {

/// Injects failures in this process while the object exists.
class NcclFaults {
public:
  NcclFaults() = default;
  ~NcclFaults();
  NcclFaults(const NcclFaults &) = delete;
  NcclFaults &operator=(const NcclFaults &) = delete;

  /// Initialisation on this device fails with ncclSystemError.
  void failInit(int device);
  /// Initialisation on this device stays ncclInProgress.
  void stallInit(int device);
  /// NCCL calls that this device queues never begin.
  void silence(int device);
  /// ncclCommGetAsyncError reports ncclRemoteError on this device.
  void breakDown(int device);
  /// ncclMemAlloc fails on this device.
  void failAllocation(int device);
  /// Sets the version of the library, in the format of NCCL_VERSION.
  void setVersion(int version);
  /// ncclCommRegister fails on this device with ncclSystemError.
  void failRegistration(int device);
};

/// Returns the number of launches, queued or captured, since the last call.
/// Grouped calls of a communicator and a stream are one launch.
int takeNcclLaunches();
/// Returns the number of communicators neither destroyed nor aborted.
int ncclCommunicators();
/// Returns the number of allocations of ncclMemAlloc that were not freed.
int ncclAllocations();

/// Counts ended communicators by the memory that their collectives used: only
/// registered memory (`registered`), both kinds (`mixed`), or only other memory
/// (`plain`).
struct NcclUse {
  int registered = 0, mixed = 0, plain = 0;
  int messages = 0; ///< number of sends and receives of registered memory
  bool operator==(const NcclUse &) const = default;
};
inline void PrintTo(const NcclUse &use, std::ostream *out) {
  *out << use.registered << " registered, " << use.mixed << " mixed, "
       << use.plain << " plain, " << use.messages << " messages";
}
/// Returns the counts since the last call.
NcclUse takeNcclUse();
/// Returns the violations of NCCL's memory rules since the last call: memory
/// that one call of a group writes and another accesses; registration of memory
/// not from ncclMemAlloc, or twice; deregistration of unregistered memory;
/// freeing of memory that is registered or in use; and a communicator that is
/// destroyed with memory registered.
std::vector<std::string> takeNcclMisuses();

} // namespace mtplan::emulator

#endif // MTPLAN_TESTS_EMULATOR_NCCL_H
