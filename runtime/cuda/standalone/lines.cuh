//===- lines.cuh - What stages that stand alone send ------------*- C++ -*-===//
//
// A message is copied before it is sent: a line sends on a stream of its own,
// so that computation does not wait for it.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_STANDALONE_LINES_CUH
#define MTPLAN_RUNTIME_CUDA_STANDALONE_LINES_CUH

#include "runtime/cuda/standalone/collectives.cuh"

namespace mtplan::runtime::cuda {

/// A line to the rank at the same place of another stage, if this rank is of
/// one of the two. Every rank has to call it.
/// \param sent  bytes of a step
inline Line lineBetween(const Rank &rank, const std::vector<int> &from,
                        const std::vector<int> &to, std::size_t sent) {
  std::vector<std::vector<int>> pairs;
  bool sends = false;
  Line line;
  for (std::size_t i = 0; i < from.size(); ++i) {
    pairs.push_back({from[i], to[i]});
    if (from[i] == rank.rank) {
      sends = true;
      line.other = 1;
    }
  }
  line.communicator = communicatorOf(rank, pairs).first;
  if (sends) {
    MTPLAN_CUDA(cudaStreamCreateWithFlags(&line.stream, cudaStreamNonBlocking));
    MTPLAN_CUDA(cudaEventCreateWithFlags(&line.ready, cudaEventDisableTiming));
    line.copies.atLeast(sent);
  }
  return line;
}

/// A first byte on every line: it makes connections, for which both ranks have
/// to come. In a step either may have to do something else first. Captured, as
/// the step is, but never launched.
inline void connectLines(Rank &rank) {
  void *const byte = rank.streams.lanes.front().exchange.atLeast(1);
  cudaStream_t stream = rank.stream();
  cudaGraph_t graph = nullptr;
  MTPLAN_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  for (const Line &line : rank.lines) {
    if (!line.communicator)
      continue;
    if (line.stream)
      MTPLAN_NCCL(
          ncclSend(byte, 1, ncclInt8, line.other, line.communicator, stream));
    else
      MTPLAN_NCCL(
          ncclRecv(byte, 1, ncclInt8, line.other, line.communicator, stream));
  }
  MTPLAN_CUDA(cudaStreamEndCapture(stream, &graph));
  MTPLAN_CUDA(cudaGraphDestroy(graph));
}

inline void send(const Run &now, int line, const Tensor &from,
                 std::int64_t elements) {
  Line &own = now.rank.lines[static_cast<std::size_t>(line)];
  const std::size_t bytes = bytesOf(from, elements);
  std::byte *copy = own.copies.data + own.copied;
  own.copied += roundedUp(bytes);
  MTPLAN_CUDA(cudaMemcpyAsync(copy, from.data, bytes, cudaMemcpyDeviceToDevice,
                              now.stream()));
  MTPLAN_CUDA(cudaEventRecord(own.ready, now.stream()));
  MTPLAN_CUDA(cudaStreamWaitEvent(own.stream, own.ready, 0));
  MTPLAN_NCCL(ncclSend(copy, static_cast<std::size_t>(elements),
                       ncclTypeOf(from.type), own.other, own.communicator,
                       own.stream));
}

inline void receive(const Run &now, int line, const Tensor &to,
                    std::int64_t elements) {
  const Line &own = now.rank.lines[static_cast<std::size_t>(line)];
  MTPLAN_NCCL(ncclRecv(to.data, static_cast<std::size_t>(elements),
                       ncclTypeOf(to.type), own.other, own.communicator,
                       now.stream()));
}

/// The step is over when all that it sends has gone.
inline void joinLines(const Rank &rank) {
  for (const Line &line : rank.lines)
    if (line.copied > 0) {
      MTPLAN_CUDA(cudaEventRecord(line.ready, line.stream));
      MTPLAN_CUDA(cudaStreamWaitEvent(rank.stream(), line.ready, 0));
    }
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_STANDALONE_LINES_CUH
