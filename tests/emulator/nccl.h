//===- nccl.h - NCCL, without a device: what tests make of it ---*- C++ -*-===//
//
// nccl.cpp has the library's functions for ranks that are threads of one
// process, each with a device of its own (cudaSetDevice, streams.h's
// setDevices). Operations go in the order of streams, and of a communicator in
// the order of their calls; one runs once its partners have come to theirs, on
// the device. A send does not end before its receive has come. What does not
// match waits for ever, as in the library. Results have the bits of the host's
// transports (runtime/communicator/reduce.h).
//
// A communicator that does not block says ncclInProgress while it is made, and
// at its first call until all of its ranks have made one; what was called is
// queued when ncclCommGetAsyncError no longer says so. What was captured is
// called when its graph is launched, in the order of the capture. Calls of a
// group are in no order, and all are captured together or none. Whichever call
// ends a communicator takes until its graphs are gone.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_EMULATOR_NCCL_H
#define MTPLAN_TESTS_EMULATOR_NCCL_H

#include <ostream>
#include <string>
#include <vector>

namespace mtplan::emulator {

/// What goes wrong from now on, of this process, while this lives.
class NcclFaults {
public:
  NcclFaults() = default;
  ~NcclFaults();
  NcclFaults(const NcclFaults &) = delete;
  NcclFaults &operator=(const NcclFaults &) = delete;

  /// Communicators of this device are not made: ncclSystemError.
  void failInit(int device);
  /// Nor are they refused: they stay in progress.
  void stallInit(int device);
  /// What this device queues of NCCL never begins.
  void silence(int device);
  /// ncclCommGetAsyncError says ncclRemoteError to communicators of this one.
  void breakDown(int device);
  /// ncclMemAlloc has no memory of this device.
  void failAllocation(int device);
  /// The library is of this version, as NCCL_VERSION has it.
  void setVersion(int version);
  /// Communicators of this device register no memory: ncclSystemError.
  void failRegistration(int device);
};

/// What was put on streams, or into graphs, since the last time: calls of a
/// communicator and a stream that are grouped are one.
int takeNcclLaunches();
/// Communicators that were made and neither destroyed nor aborted.
int ncclCommunicators();
/// Pieces of memory that NCCL has allocated and that were not freed.
int ncclAllocations();

/// Communicators that have ended, by what their collectives were given: all of
/// it registered memory, some, or none.
struct NcclUse {
  int registered = 0, mixed = 0, plain = 0;
  int messages = 0; ///< sends and receipts of registered memory
  bool operator==(const NcclUse &) const = default;
};
inline void PrintTo(const NcclUse &use, std::ostream *out) {
  *out << use.registered << " registered, " << use.mixed << " mixed, "
       << use.plain << " plain, " << use.messages << " messages";
}
/// Since the last time.
NcclUse takeNcclUse();
/// What was done to memory against NCCL's rules since the last time: written by
/// one of several calls in a group and touched by another, registered where it
/// was not allocated by ncclMemAlloc, registered twice, deregistered without,
/// freed while registered or in use, or left registered with a communicator
/// that is destroyed.
std::vector<std::string> takeNcclMisuses();

} // namespace mtplan::emulator

#endif // MTPLAN_TESTS_EMULATOR_NCCL_H
