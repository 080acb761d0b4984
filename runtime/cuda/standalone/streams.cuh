//===- streams.cuh - Streams of a rank that stands alone --------*- C++ -*-===//
//
// The streams are those of the plan. A run of a program begins and ends on the
// first, which has the kernels; the others fork from it and join it again. A
// stream with only overlapped work joins when the schedule ends. In between the
// streams run in parallel, except for the plan's waits.
//
//===----------------------------------------------------------------------===//

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

/// Memory of the device that grows while the step is captured. Replaced memory
/// is not freed, because the graph uses it.
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

/// Pinned memory of the host with the inputs of a step.
struct Staging {
  std::byte *data = nullptr;
  std::size_t size = 0, used = 0; ///< bytes

  void open(std::size_t bytes) {
    size = bytes;
    MTPLAN_CUDA(cudaMallocHost(reinterpret_cast<void **>(&data), size));
  }
  /// Takes bytes for one input.
  std::byte *take(std::size_t bytes) {
    if (used + bytes > size)
      throw DeviceError("inputs of a step take more than the " +
                        std::to_string(size) + " bytes that are kept for them");
    std::byte *const piece = data + used;
    used += roundedUp(bytes);
    return piece;
  }
};

/// A stream, with memory that its successive kernels share.
struct Lane {
  cudaStream_t stream = nullptr;
  Scratch scratch, exchange, workspace;
  /// Grouped collectives (collectives.cuh): whether a group is open, the bytes
  /// of `exchange` that it uses, and the rearranging after it.
  bool isTogether = false;
  std::size_t exchanged = 0;
  std::vector<std::function<void()>> behind;
};

struct Streams {
  std::vector<Lane> lanes;
  cudaStream_t aside = nullptr;    ///< for work outside the step
  std::vector<cudaEvent_t> events; ///< every run records them anew
  std::size_t recorded = 0;        ///< events recorded in this run

  void open(int count) {
    lanes.resize(static_cast<std::size_t>(count));
    for (Lane &lane : lanes)
      MTPLAN_CUDA(
          cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking));
    MTPLAN_CUDA(cudaStreamCreateWithFlags(&aside, cudaStreamNonBlocking));
  }

  /// Begins a run: the other streams wait for the first.
  void fork(std::initializer_list<int> others) {
    recorded = 0;
    cudaEvent_t begun = done(0);
    for (const int other : others)
      wait(other, begun);
  }
  /// Ends a run: the first stream waits for the others.
  void join(std::initializer_list<int> others) {
    for (const int other : others)
      wait(0, done(other));
  }

  /// Returns an event that happens when the stream's present work is done.
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
  /// Makes further work of the stream wait for the event.
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
