//===- streams.cpp - CUDA streams and events on the host ------------------===//

#include <utility>

#include "tests/emulator/machine.h"

using namespace mtplan::emulator;

namespace mtplan::emulator {

thread_local int captures = 0, openCaptures = 0;

Machine &machine() {
  static Machine all;
  return all;
}

bool isForbidden() { return captures > 0 || machine().globalCaptures > 0; }

// Runs the first work in the stream's queue. Returns false if the queue is
// empty or the work has to wait for another device.
bool Machine::advance(cudaStream_t stream) {
  if (stream->work.empty())
    return false;
  // Removes the work first, because work that throws must not run again.
  Polled work = std::move(stream->work.front());
  stream->work.pop_front();
  if (work()) {
    ++workDone;
    changed.notify_all();
    return true;
  }
  stream->work.push_front(std::move(work));
  return false;
}

bool Machine::advanceAny(cudaStream_t asked) {
  if (order == StreamOrder::asked && asked && advance(asked))
    return true;
  const std::size_t count = streams.size();
  for (std::size_t i = 0; i < count; ++i)
    if (advance(streams[order == StreamOrder::last ? count - 1 - i : i]))
      return true;
  return false;
}

// Queues work or adds it to the stream's capture, like put(). The caller must
// hold the machine's mutex.
static cudaError_t putLocked(cudaStream_t stream, const Make &make,
                             bool mayWait = false) {
  Machine &all = machine();
  if (!stream->captured) {
    stream->work.push_back(make());
    if (mayWait)
      stream->past.insert(all.inFlight.begin(stream->device));
    all.changed.notify_all();
    return cudaSuccess;
  }
  Captured &into = *stream->captured;
  std::vector<std::size_t> after = std::move(stream->alsoAfter);
  stream->alsoAfter.clear();
  if (stream->last != kNone)
    after.push_back(stream->last);
  stream->last = into.nodes.size();
  into.nodes.push_back({make, after, mayWait});
  return cudaSuccess;
}

cudaError_t put(cudaStream_t stream, const Make &make, bool mayWait) {
  const std::lock_guard lock(machine().mutex);
  return putLocked(stream, make, mayWait);
}

} // namespace mtplan::emulator

namespace {

thread_local int currentDevice = 0;
thread_local bool hasSaidWhich = false;

/// Waits until all threads wait, but at most 20 ms: a thread may be blocked
/// elsewhere.
template <typename Ended>
void waitForOthers(Machine &all, std::unique_lock<std::mutex> &lock,
                   const Ended &ended) {
  constexpr std::chrono::milliseconds kMoment(20);
  const std::uint64_t round = all.waitRounds;
  if (++all.waiting >= all.threads) {
    all.waiting = 0;
    ++all.waitRounds;
    return all.changed.notify_all();
  }
  all.changed.wait_for(lock, kMoment,
                       [&] { return all.waitRounds != round || ended(); });
  if (all.waitRounds == round)
    --all.waiting;
}

/// Runs queued work until `ended` returns true.
template <typename Ended>
void runUntil(Ended ended, cudaStream_t asked = nullptr) {
  const WithinReach reach;
  Machine &all = machine();
  std::unique_lock lock(all.mutex);
  if (all.threads > 1)
    waitForOthers(all, lock, ended);
  while (!ended())
    if (!all.advanceAny(asked))
      // Another thread has to queue work, or time has to pass.
      all.changed.wait_for(lock, std::chrono::milliseconds(1));
}

cudaError_t spoilt(Captured &captured, cudaError_t why) {
  captured.isSpoilt = true;
  return why;
}

/// Returns whether the stream is being captured. If so, invalidates the
/// capture, because the caller wants to wait for the stream.
bool isCaptured(cudaStream_t stream) {
  const std::lock_guard lock(machine().mutex);
  if (!stream->captured)
    return false;
  stream->captured->isSpoilt = true;
  return true;
}

/// Notes that the host has waited for the stream's work.
void end(cudaStream_t stream) {
  machine().inFlight.end(std::exchange(stream->past, {}));
}

/// Notes that the host has waited for the event.
cudaError_t ended(cudaEvent_t event) {
  machine().inFlight.end(event->state->past);
  return cudaSuccess;
}

/// Returns work that marks an event as done. The machine's mutex is locked
/// while the work runs.
Polled marking(const std::shared_ptr<EventState> &its) {
  return [its] {
    its->done = true;
    its->when = machine().workDone;
    return true;
  };
}

/// Records an event. The caller must hold the machine's mutex.
cudaError_t recordLocked(cudaEvent_t event, cudaStream_t stream) {
  if (stream->captured) {
    const cudaError_t status =
        putLocked(stream, [] { return Polled([] { return true; }); });
    event->captured = stream->captured;
    event->node = stream->last;
    return status;
  }
  event->state = std::make_shared<EventState>();
  event->captured = nullptr;
  event->state->past = stream->past;
  return putLocked(stream, [its = event->state] { return marking(its); });
}

} // namespace

namespace mtplan::emulator {

void setStreamOrder(StreamOrder order) {
  const std::lock_guard lock(machine().mutex);
  machine().order = order;
}

void setThreads(int count) {
  const std::lock_guard lock(machine().mutex);
  machine().threads = count;
}

void setDevices(int count) {
  const std::lock_guard lock(machine().mutex);
  machine().devices = count;
}

cudaError_t checkDeviceChosen() {
  return machine().devices > 1 && !hasSaidWhich ? cudaErrorDeviceUninitialized
                                                : cudaSuccess;
}

cudaError_t checkStreamDevice(cudaStream_t stream) {
  if (const cudaError_t why = checkDeviceChosen(); why != cudaSuccess)
    return why;
  return stream->device == currentDevice ? cudaSuccess
                                         : cudaErrorInvalidResourceHandle;
}

void advance() {
  const WithinReach reach;
  const std::lock_guard lock(machine().mutex);
  machine().advanceAny(nullptr);
}

int graphLaunches() {
  const std::lock_guard lock(machine().mutex);
  return machine().launches;
}

void setTimesInGraphs(bool areAccepted) {
  const std::lock_guard lock(machine().mutex);
  machine().timesInGraphs = areAccepted;
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
  return put(stream, make, true);
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
  hasSaidWhich = true;
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
  if (const cudaError_t why = checkDeviceChosen(); why != cudaSuccess)
    return why;
  *stream = new CUstream_st;
  (*stream)->device = currentDevice;
  const std::lock_guard lock(machine().mutex);
  machine().streams.push_back(*stream);
  return cudaSuccess;
}
// CUDA returns at once and destroys the stream after its work. Here the call
// waits.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  try {
    runUntil([&] { return stream->work.empty(); }, stream);
  } catch (...) {
    // No caller is left to receive the error.
  }
  const std::lock_guard lock(machine().mutex);
  std::erase(machine().streams, stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const cudaError_t why = checkDeviceChosen(); why != cudaSuccess)
    return why;
  if (isCaptured(stream))
    return cudaErrorStreamCaptureUnsupported;
  runUntil([&] { return stream->work.empty(); }, stream);
  const std::lock_guard lock(machine().mutex);
  end(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (isCaptured(stream))
    return cudaErrorStreamCaptureUnsupported;
  const WithinReach reach;
  const std::lock_guard lock(machine().mutex);
  machine().advanceAny(stream);
  if (!stream->work.empty())
    return cudaErrorNotReady;
  end(stream);
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  if (isForbidden())
    return cudaErrorStreamCaptureUnsupported;
  runUntil([] {
    for (cudaStream_t stream : machine().streams)
      if (stream->device == currentDevice && !stream->work.empty())
        return false;
    return true;
  });
  const std::lock_guard lock(machine().mutex);
  machine().inFlight.endAll(currentDevice);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
  if (const cudaError_t why = checkDeviceChosen(); why != cudaSuccess)
    return why;
  *event = new CUevent_st;
  (*event)->device = currentDevice;
  (*event)->keepsTime = (flags & cudaEventDisableTiming) == 0;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (event->device != stream->device)
    return cudaErrorInvalidResourceHandle;
  const std::lock_guard lock(machine().mutex);
  return recordLocked(event, stream);
}
// An event that a graph records has the state of the previous launch until the
// present launch records it.
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
                                     unsigned flags) {
  if (event->device != stream->device)
    return cudaErrorInvalidResourceHandle;
  const std::lock_guard lock(machine().mutex);
  if (flags != cudaEventRecordExternal || !stream->captured)
    return recordLocked(event, stream);
  event->state = nullptr;
  event->captured = nullptr;
  event->isOfGraph = true;
  return putLocked(stream, [event] {
    return Polled([event] {
      if (!event->state)
        event->state = std::make_shared<EventState>();
      return marking(event->state)();
    });
  });
}
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start,
                                 cudaEvent_t end) {
  const std::lock_guard lock(machine().mutex);
  for (cudaEvent_t one : {start, end}) {
    if (one->captured)
      return cudaErrorCapturedEvent;
    if (one->isOfGraph && !machine().timesInGraphs)
      return cudaErrorInvalidValue;
    if (!one->keepsTime || !one->state)
      return cudaErrorInvalidResourceHandle;
    if (!one->state->done)
      return cudaErrorNotReady;
  }
  *ms = static_cast<float>(end->state->when) -
        static_cast<float>(start->state->when);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned /*flags*/) {
  const std::lock_guard lock(machine().mutex);
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
  if (!event->state)
    return cudaSuccess;
  machine().inFlight.add(stream->past, event->state->past);
  return putLocked(stream, [its = event->state] {
    return Polled([its] { return its->done; });
  });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const cudaError_t why = checkDeviceChosen(); why != cudaSuccess)
    return why;
  const WithinReach reach;
  const std::lock_guard lock(machine().mutex);
  if (event->captured)
    return cudaErrorCapturedEvent;
  if (isForbidden())
    return cudaErrorStreamCaptureUnsupported;
  if (!event->state)
    return cudaSuccess;
  if (event->state->done)
    return ended(event);
  machine().advanceAny(nullptr);
  return event->state->done ? ended(event) : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  std::shared_ptr<EventState> its;
  {
    const std::lock_guard lock(machine().mutex);
    if (event->captured)
      return cudaErrorCapturedEvent;
    if (isForbidden())
      return cudaErrorStreamCaptureUnsupported;
    if (!event->state)
      return cudaSuccess;
    its = event->state;
  }
  runUntil([&its] { return its->done; });
  const std::lock_guard lock(machine().mutex);
  return ended(event);
}

} // extern "C"
