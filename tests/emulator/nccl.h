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
// called when its graph is launched, in the order of the capture; to abort a
// communicator takes until its graphs are gone.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_EMULATOR_NCCL_H
#define MTPLAN_TESTS_EMULATOR_NCCL_H

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
};

/// Communicators that were made and neither destroyed nor aborted.
int ncclCommunicators();

} // namespace mtplan::emulator

#endif // MTPLAN_TESTS_EMULATOR_NCCL_H
