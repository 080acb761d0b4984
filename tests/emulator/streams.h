//===- streams.h - CUDA streams and events on the host ----------*- C++ -*-===//
//
// Queued work is deferred until a thread waits for its end, and then runs on
// that thread. Tests choose one of the orders that streams and events allow.
// This exposes missing dependencies between streams.
//
// Graphs are captured and launched by the same rules. A capture fails if a
// thread synchronises with a captured stream, if a captured stream waits for an
// event from outside the capture, or if a stream is not joined at the end.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_EMULATOR_STREAMS_H
#define MTPLAN_TESTS_EMULATOR_STREAMS_H

#include <atomic>
#include <cstddef>
#include <functional>

#include <cuda_runtime_api.h>

namespace mtplan::emulator {

/// Selects the stream that runs when several streams have work that can run.
enum class StreamOrder {
  first, ///< the oldest stream, as far as it can run
  last,  ///< the newest stream, as far as it can run
  asked, ///< the stream that a thread waits for, and others if it needs them
};
/// Sets the order in this process.
void setStreamOrder(StreamOrder order);

/// Sets the number of threads that queue work, initially 1. When one of them
/// waits, no work begins until all wait or 20 ms have passed, so that the order
/// applies to the streams of all threads.
void setThreads(int count);

/// Sets the number of devices, initially 1. Streams and events belong to the
/// thread's device at their creation.
void setDevices(int count);
/// Sets the devices' names, by number. Others are named "emulated".
void nameDevices(const std::vector<std::string> &names);

/// Returns an error if there are several devices and this thread has not chosen
/// one. CUDA would create a context on device 0.
cudaError_t checkDeviceChosen();
/// Returns an error if the stream belongs to another device than this thread's.
cudaError_t checkStreamDevice(cudaStream_t stream);

/// Returns the bytes of a device that NCCL allocated, for cudaMemGetInfo.
std::atomic<std::size_t> &bytesTaken(int device);

/// Runs some queued work, as a device would by itself.
void advance();

/// Returns the number of graph launches so far, by all threads.
int graphLaunches();

/// Sets whether cudaEventElapsedTime accepts events that graphs record,
/// initially true.
void setTimesInGraphs(bool areAccepted);

/// Queues `work` on a stream.
cudaError_t enqueue(cudaStream_t stream, const std::function<void()> &work);

/// Does work that may have to wait for other devices. The function is called
/// until it returns true.
using Polled = std::function<bool()>;
/// Queues work that may have to wait for other devices.
/// \param make  returns new work for every execution; a graph may be launched
///              several times
cudaError_t enqueuePolled(cudaStream_t stream,
                          const std::function<Polled()> &make);

} // namespace mtplan::emulator

#endif // MTPLAN_TESTS_EMULATOR_STREAMS_H
