//===- streams.cuh - Streams of a stand-alone program -----------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_STANDALONE_STREAMS_CUH
#define MTPLAN_RUNTIME_CUDA_STANDALONE_STREAMS_CUH

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "runtime/cuda/device/tensor.h"
#include "runtime/cuda/device_error.h"

namespace mtplan::runtime::cuda {

/// Holds device memory that may grow while the step is captured. The previous
/// memory is not freed, because the captured graph uses it.
struct Scratch {
  std::byte *data = nullptr;
  std::size_t size = 0;

  void *atLeast(std::size_t bytes) {
    if (bytes > size) {
      MTPLAN_CUDA(cudaMalloc(reinterpret_cast<void **>(&data), bytes));
      size = bytes;
    }
    return data;
  }
};

/// Holds pinned host memory for the inputs of a step.
struct Staging {
  std::byte *data = nullptr;
  std::size_t size = 0, used = 0; ///< bytes

  void open(std::size_t bytes) {
    size = bytes;
    MTPLAN_CUDA(cudaMallocHost(reinterpret_cast<void **>(&data), size));
  }
  std::byte *take(std::size_t bytes) {
    if (used + bytes > size)
      throw DeviceError("inputs of a step take more than the " +
                        std::to_string(size) +
                        " bytes that are reserved for them");
    std::byte *const piece = data + used;
    used += roundedUp(bytes);
    return piece;
  }
};

/// Holds a stream, with scratch memory that its kernels use one after another.
struct Lane {
  cudaStream_t stream = nullptr;
  Scratch scratch, exchange, workspace;
  /// Describes the state of grouped collectives (groupStart): whether a group
  /// is open, the bytes of `exchange` that the group uses, and the
  /// transpositions that follow the group.
  bool isTogether = false;
  std::size_t exchanged = 0;
  std::vector<std::function<void()>> behind;
};

/// Holds the streams of the plan. A run begins and ends on the first stream,
/// which runs the operators' kernels. The other streams fork from the first
/// stream and join it again. A stream whose work in a run is all overlapped
/// joins only at the end of the schedule. Between fork and join, only the
/// plan's waits order the streams.
struct Streams {
  std::vector<Lane> lanes;
  cudaStream_t aside = nullptr;    ///< for work outside the captured step
  std::vector<cudaEvent_t> events; ///< reused by every run
  std::size_t recorded = 0;        ///< events used in this run

  void open(int count) {
    lanes.resize(static_cast<std::size_t>(count));
    for (Lane &lane : lanes)
      MTPLAN_CUDA(
          cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking));
    MTPLAN_CUDA(cudaStreamCreateWithFlags(&aside, cudaStreamNonBlocking));
  }

  /// Begins a run: the other streams wait for the first stream.
  void fork(std::initializer_list<int> others) {
    recorded = 0;
    cudaEvent_t begun = done(0);
    for (const int other : others)
      wait(other, begun);
  }
  /// Ends a run: the first stream waits for the other streams.
  void join(std::initializer_list<int> others) {
    for (const int other : others)
      wait(0, done(other));
  }

  /// Records an event after the work queued on the stream so far, and returns
  /// the event.
  cudaEvent_t done(int stream) {
    if (recorded == events.size()) {
      events.push_back(nullptr);
      MTPLAN_CUDA(
          cudaEventCreateWithFlags(&events.back(), cudaEventDisableTiming));
    }
    cudaEvent_t event = events[recorded++];
    MTPLAN_CUDA(cudaEventRecord(event, at(stream)));
    return event;
  }
  void wait(int stream, cudaEvent_t event) const {
    MTPLAN_CUDA(cudaStreamWaitEvent(at(stream), event, 0));
  }

private:
  cudaStream_t at(int stream) const {
    return lanes[static_cast<std::size_t>(stream)].stream;
  }
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_STANDALONE_STREAMS_CUH
