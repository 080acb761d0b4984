//===- graphs.cpp - CUDA graphs emulated on the host ----------------------===//

#include <algorithm>
#include <set>

#include "tests/emulator/machine.h"

using namespace mtplan::emulator;

namespace {

/// Holds a graph launch in progress, whose work is created in capture order.
class Launch {
public:
  explicit Launch(const std::vector<Node> &theNodes)
      : nodes(theNodes), missing(nodes.size()), next(nodes.size()) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      begun.push_back(nodes[i].make());
      missing[i] = nodes[i].after.size();
      for (const std::size_t early : nodes[i].after)
        next[early].push_back(i);
      if (missing[i] == 0)
        ready.insert(i);
    }
  }

  bool advance() {
    while (!ready.empty() && advanceOne()) {
    }
    return ready.empty();
  }

private:
  bool advanceOne() {
    const std::vector<std::size_t> some =
        machine().order == StreamOrder::last
            ? std::vector<std::size_t>(ready.rbegin(), ready.rend())
            : std::vector<std::size_t>(ready.begin(), ready.end());
    for (const std::size_t i : some) {
      if (!begun[i]())
        continue;
      ready.erase(i);
      for (const std::size_t late : next[i])
        if (--missing[late] == 0)
          ready.insert(late);
      return true;
    }
    return false;
  }

  const std::vector<Node> nodes;
  std::vector<std::size_t> missing;
  std::vector<std::vector<std::size_t>> next;
  std::vector<Polled> begun;
  std::set<std::size_t> ready;
};

/// Returns whether the origin's last node depends on every stream's last node.
bool isJoined(const Captured &captured) {
  std::vector<bool> before(captured.nodes.size(), false);
  std::vector<std::size_t> open = captured.origin->alsoAfter;
  if (captured.origin->last != kNone)
    open.push_back(captured.origin->last);
  while (!open.empty()) {
    const std::size_t node = open.back();
    open.pop_back();
    if (before[node])
      continue;
    before[node] = true;
    const auto &after = captured.nodes[node].after;
    open.insert(open.end(), after.begin(), after.end());
  }
  for (cudaStream_t stream : captured.streams)
    if (stream->last != kNone && !before[stream->last])
      return false;
  return true;
}

/// Counts a capture as begun (`change` 1) or ended (-1).
void count(const Captured &captured, int change) {
  openCaptures += change;
  if (captured.mode != cudaStreamCaptureModeRelaxed)
    captures += change;
  if (captured.mode == cudaStreamCaptureModeGlobal)
    machine().globalCaptures += change;
}

} // namespace

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream,
                                   cudaStreamCaptureMode mode) {
  const std::lock_guard lock(machine().mutex);
  if (stream->captured)
    return cudaErrorIllegalState;
  stream->captured = std::make_shared<Captured>();
  stream->captured->origin = stream;
  stream->captured->mode = mode;
  stream->captured->number = ++machine().captures;
  stream->captured->streams = {stream};
  stream->last = kNone;
  count(*stream->captured, 1);
  return cudaSuccess;
}
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name)
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
                                     cudaStreamCaptureStatus *status,
                                     unsigned long long *number,
                                     cudaGraph_t * /*graph*/,
                                     const cudaGraphNode_t ** /*dependencies*/,
                                     const cudaGraphEdgeData ** /*edges*/,
                                     std::size_t * /*count*/) {
  const std::lock_guard lock(machine().mutex);
  *status = stream->captured ? cudaStreamCaptureStatusActive
                             : cudaStreamCaptureStatusNone;
  if (stream->captured && number)
    *number = stream->captured->number;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
  *graph = nullptr;
  const std::lock_guard lock(machine().mutex);
  const std::shared_ptr<Captured> captured = stream->captured;
  if (!captured || captured->origin != stream)
    return cudaErrorStreamCaptureUnmatched;
  count(*captured, -1);
  const bool joined = isJoined(*captured);
  captured->isOpen = false;
  for (cudaStream_t one : captured->streams) {
    one->captured = nullptr;
    one->alsoAfter.clear();
  }
  if (captured->isSpoilt)
    return cudaErrorStreamCaptureInvalidated;
  if (!joined)
    return cudaErrorStreamCaptureUnjoined;
  *graph = new CUgraph_st{std::move(captured->nodes)};
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *graphExec, cudaGraph_t graph,
                                 unsigned long long /*flags*/) {
  *graphExec = new CUgraphExec_st{graph->nodes};
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t /*graph*/,
                            cudaStream_t /*stream*/) {
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  {
    const std::lock_guard lock(machine().mutex);
    ++machine().launches;
  }
  const auto work = [nodes = graph->nodes] {
    return Polled([launch = std::make_shared<Launch>(nodes)] {
      return launch->advance();
    });
  };
  return put(stream, work, std::ranges::any_of(graph->nodes, &Node::mayWait));
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

} // extern "C"
