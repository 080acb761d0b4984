//===- streams.h - What is queued on a device, run on the host --*- C++ -*-===//
//
// Work that a stream is given waits until somebody asks for its end; then it
// runs on the thread that asks, in an order that the rules of streams and
// events allow and that is as unlike the order of the calls as one likes. So
// whatever was left unsaid between two streams goes wrong here.
//
// Graphs are captured and launched by the same rules. Of CUDA's ways to fail in
// a capture those are here that a program can run into: what the stream may not
// do while it is captured, events from outside, streams that are not joined.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_EMULATOR_STREAMS_H
#define MTPLAN_TESTS_EMULATOR_STREAMS_H

#include <atomic>
#include <cstddef>
#include <functional>

#include <cuda_runtime_api.h>

namespace mtplan::emulator {

/// Which of several streams goes on, if more than one can.
enum class Pace {
  first, ///< the one that was made first, as far as it gets
  last,  ///< the one that was made last
  asked, ///< what is waited for, and of the others only what that needs
};
/// From now on, of this process.
void setPace(Pace pace);

/// Threads that queue work; 1 at first. When one waits, nothing begins before
/// the others do, or a moment has passed: else streams could only choose among
/// what happens to be there.
void setThreads(int count);

/// Devices that there are; 1 at first. Streams and events belong to the device
/// that is the thread's when they are made.
void setDevices(int count);
/// By their numbers; those behind them are called "emulated", as all are at
/// first.
void nameDevices(const std::vector<std::string> &names);

/// Why this thread may not begin anything: there are several devices, and it
/// has not said which is its. CUDA takes the first, and opens a context there.
cudaError_t whyHomeless();
/// Why this thread may not have the stream compute: it belongs to another
/// device than the thread's.
cudaError_t whyElsewhere(cudaStream_t stream);

/// Of the device's memory, as cudaMemGetInfo has it: what NCCL allocated.
std::atomic<std::size_t> &bytesTaken(int device);

/// Devices do some of what they can, as they do by themselves.
void advance();

/// Graphs that were launched so far, by all threads.
int graphLaunches();

/// Whether cudaEventElapsedTime takes events that graphs record; at first it
/// does. From now on, of this process.
void setTimesInGraphs(bool areTold);

/// Puts work on a stream.
cudaError_t enqueue(cudaStream_t stream, const std::function<void()> &work);

/// Work that may have to wait for others: is asked again until it says true.
using Polled = std::function<bool()>;
/// \param make  makes the work anew every time that it is to be done: a graph
///              may be launched many times
cudaError_t enqueuePolled(cudaStream_t stream,
                          const std::function<Polled()> &make);

} // namespace mtplan::emulator

#endif // MTPLAN_TESTS_EMULATOR_STREAMS_H
