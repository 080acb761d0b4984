//===- streams.cpp - What is queued on a device, run on the host ----------===//

#include "tests/emulator/streams.h"

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

using namespace mtplan::emulator;

namespace {

using Make = std::function<Polled()>;

/// A piece of a graph. Those it waits for come before it.
struct Node {
  Make make;
  std::vector<std::size_t> after;
};

/// What is being captured from a stream and those that joined it.
struct Captured {
  cudaStream_t origin;
  std::vector<Node> nodes;
  std::vector<cudaStream_t> streams;
  bool isOpen = true, isSpoilt = false;
};

thread_local int currentDevice = 0;
thread_local int captures = 0; ///< that this thread has begun and not ended

/// Of the whole process.
struct Machine {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<cudaStream_t> streams; ///< in the order in which they were made
  Pace pace = Pace::first;
  int devices = 1;

  bool advance(cudaStream_t stream);
  bool advanceAny(cudaStream_t asked);
};

Machine &machine() {
  static Machine all;
  return all;
}

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

} // namespace

struct CUstream_st {
  int device = 0;
  std::deque<Polled> work;
  std::shared_ptr<Captured> captured;
  std::size_t last = kNone;           ///< its last node
  std::vector<std::size_t> alsoAfter; ///< what its next node follows, too
};

struct CUevent_st {
  std::shared_ptr<bool> happened; ///< null: never recorded
  std::shared_ptr<Captured> captured;
  std::size_t node = kNone; ///< in it
};

struct CUgraph_st {
  std::vector<Node> nodes;
};

struct CUgraphExec_st {
  std::vector<Node> nodes;
};

namespace {

// One piece of work; false if it has to wait.
bool Machine::advance(cudaStream_t stream) {
  if (stream->work.empty())
    return false;
  // Before it runs: it may throw, and is not to be run again then.
  Polled work = std::move(stream->work.front());
  stream->work.pop_front();
  if (work()) {
    changed.notify_all();
    return true;
  }
  stream->work.push_front(std::move(work));
  return false;
}

bool Machine::advanceAny(cudaStream_t asked) {
  if (pace == Pace::asked && asked && advance(asked))
    return true;
  const std::size_t count = streams.size();
  for (std::size_t i = 0; i < count; ++i)
    if (advance(streams[pace == Pace::last ? count - 1 - i : i]))
      return true;
  return false;
}

/// Runs what is queued until `ended` says so.
template <typename Ended>
void runUntil(Ended ended, cudaStream_t asked = nullptr) {
  Machine &all = machine();
  std::unique_lock lock(all.mutex);
  while (!ended())
    if (!all.advanceAny(asked))
      // Somebody else has to queue something, or time has to pass.
      all.changed.wait_for(lock, std::chrono::milliseconds(1));
}

cudaError_t put(cudaStream_t stream, const Make &make) {
  Machine &all = machine();
  const std::lock_guard lock(all.mutex);
  if (!stream->captured) {
    stream->work.push_back(make());
    all.changed.notify_all();
    return cudaSuccess;
  }
  Captured &into = *stream->captured;
  std::vector<std::size_t> after = std::move(stream->alsoAfter);
  stream->alsoAfter.clear();
  if (stream->last != kNone)
    after.push_back(stream->last);
  stream->last = into.nodes.size();
  into.nodes.push_back({make, after});
  return cudaSuccess;
}

cudaError_t spoilt(Captured &captured, cudaError_t why) {
  captured.isSpoilt = true;
  return why;
}

/// Whether the stream may be waited for.
bool isCaptured(cudaStream_t stream) {
  if (!stream->captured)
    return false;
  stream->captured->isSpoilt = true;
  return true;
}

/// A graph under way.
class Launch {
public:
  explicit Launch(const std::vector<Node> &theNodes)
      : nodes(theNodes), missing(nodes.size()), next(nodes.size()),
        begun(nodes.size()) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
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
        machine().pace == Pace::last
            ? std::vector<std::size_t>(ready.rbegin(), ready.rend())
            : std::vector<std::size_t>(ready.begin(), ready.end());
    for (const std::size_t i : some) {
      if (!begun[i])
        begun[i] = nodes[i].make();
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

/// Whether every stream's last node comes before the origin's end.
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

} // namespace

namespace mtplan::emulator {

void setPace(Pace pace) {
  const std::lock_guard lock(machine().mutex);
  machine().pace = pace;
}

void setDevices(int count) {
  const std::lock_guard lock(machine().mutex);
  machine().devices = count;
}

cudaError_t enqueue(cudaStream_t stream, const std::function<void()> &work) {
  return put(stream, [work] {
    return [work] {
      work();
      return true;
    };
  });
}

cudaError_t enqueuePolled(cudaStream_t stream,
                          const std::function<Polled()> &make) {
  return put(stream, make);
}

} // namespace mtplan::emulator

extern "C" {

cudaError_t cudaGetDeviceCount(int *count) {
  *count = machine().devices;
  return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}
cudaError_t cudaGetDevice(int *device) {
  *device = currentDevice;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= machine().devices)
    return cudaErrorInvalidDevice;
  currentDevice = device;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int *version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream,
                                      unsigned /*flags*/) {
  *stream = new CUstream_st;
  (*stream)->device = currentDevice;
  const std::lock_guard lock(machine().mutex);
  machine().streams.push_back(*stream);
  return cudaSuccess;
}
// CUDA returns at once and ends the stream when its work has been done.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  try {
    runUntil([&] { return stream->work.empty(); }, stream);
  } catch (...) {
    // Nobody is left who could hear of it.
  }
  const std::lock_guard lock(machine().mutex);
  std::erase(machine().streams, stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (isCaptured(stream))
    return cudaErrorStreamCaptureUnsupported;
  runUntil([&] { return stream->work.empty(); }, stream);
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (isCaptured(stream))
    return cudaErrorStreamCaptureUnsupported;
  const std::lock_guard lock(machine().mutex);
  machine().advanceAny(stream);
  return stream->work.empty() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaDeviceSynchronize() {
  if (captures > 0)
    return cudaErrorStreamCaptureUnsupported;
  runUntil([] {
    for (cudaStream_t stream : machine().streams)
      if (stream->device == currentDevice && !stream->work.empty())
        return false;
    return true;
  });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned /*flags*/) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (stream->captured) {
    const cudaError_t status =
        put(stream, [] { return Polled([] { return true; }); });
    event->captured = stream->captured;
    event->node = stream->last;
    return status;
  }
  auto mark = std::make_shared<bool>(false);
  event->happened = mark;
  event->captured = nullptr;
  return enqueue(stream, [mark] { *mark = true; });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned /*flags*/) {
  if (event->captured) {
    if (!event->captured->isOpen)
      return cudaErrorCapturedEvent;
    if (!stream->captured) {
      stream->captured = event->captured;
      stream->last = kNone;
      stream->captured->streams.push_back(stream);
    } else if (stream->captured != event->captured) {
      return spoilt(*stream->captured, cudaErrorStreamCaptureMerge);
    }
    stream->alsoAfter.push_back(event->node);
    return cudaSuccess;
  }
  if (stream->captured)
    return spoilt(*stream->captured, cudaErrorStreamCaptureIsolation);
  if (!event->happened)
    return cudaSuccess;
  return put(stream, [mark = event->happened] {
    return Polled([mark] { return *mark; });
  });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (event->captured)
    return cudaErrorCapturedEvent;
  const std::lock_guard lock(machine().mutex);
  if (!event->happened || *event->happened)
    return cudaSuccess;
  machine().advanceAny(nullptr);
  return *event->happened ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event->captured)
    return cudaErrorCapturedEvent;
  if (event->happened)
    runUntil([mark = event->happened] { return *mark; });
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream,
                                   cudaStreamCaptureMode /*mode*/) {
  if (stream->captured)
    return cudaErrorIllegalState;
  stream->captured = std::make_shared<Captured>();
  stream->captured->origin = stream;
  stream->captured->streams = {stream};
  stream->last = kNone;
  ++captures;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
  *graph = nullptr;
  const std::shared_ptr<Captured> captured = stream->captured;
  if (!captured || captured->origin != stream)
    return cudaErrorStreamCaptureUnmatched;
  --captures;
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
  *graph = new CUgraph_st{captured->nodes};
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
  return put(stream, [nodes = graph->nodes] {
    return Polled([launch = std::make_shared<Launch>(nodes)] {
      return launch->advance();
    });
  });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

/// Whether this thread may not do what would have to wait.
bool emulatorIsCapturing() { return captures > 0; }

} // extern "C"
