//===- streams.cpp - What is queued on a device, run on the host ----------===//

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

// One piece of work; false if it has to wait.
bool Machine::advance(cudaStream_t stream) {
  if (stream->work.empty())
    return false;
  // Before it runs: it may throw, and is not to be run again then.
  Polled work = std::move(stream->work.front());
  stream->work.pop_front();
  if (work()) {
    ++happenings;
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

cudaError_t put(cudaStream_t stream, const Make &make, bool meets) {
  Machine &all = machine();
  const std::lock_guard lock(all.mutex);
  if (!stream->captured) {
    stream->work.push_back(make());
    if (meets)
      stream->past.insert(all.flights.begin(stream->device));
    all.changed.notify_all();
    return cudaSuccess;
  }
  Captured &into = *stream->captured;
  std::vector<std::size_t> after = std::move(stream->alsoAfter);
  stream->alsoAfter.clear();
  if (stream->last != kNone)
    after.push_back(stream->last);
  stream->last = into.nodes.size();
  into.nodes.push_back({make, after, meets});
  return cudaSuccess;
}

} // namespace mtplan::emulator

namespace {

thread_local int currentDevice = 0;
thread_local bool hasSaidWhich = false;

/// Returns when all threads have come, or after a moment: one may wait for
/// others elsewhere.
template <typename Ended>
void meetOthers(Machine &all, std::unique_lock<std::mutex> &lock,
                const Ended &ended) {
  constexpr std::chrono::milliseconds kMoment(20);
  const std::uint64_t meeting = all.meetings;
  if (++all.waiting >= all.threads) {
    all.waiting = 0;
    ++all.meetings;
    return all.changed.notify_all();
  }
  all.changed.wait_for(lock, kMoment,
                       [&] { return all.meetings != meeting || ended(); });
  if (all.meetings == meeting)
    --all.waiting;
}

/// Runs what is queued until `ended` says so.
template <typename Ended>
void runUntil(Ended ended, cudaStream_t asked = nullptr) {
  const WithinReach reach;
  Machine &all = machine();
  std::unique_lock lock(all.mutex);
  if (all.threads > 1)
    meetOthers(all, lock, ended);
  while (!ended())
    if (!all.advanceAny(asked))
      // Somebody else has to queue something, or time has to pass.
      all.changed.wait_for(lock, std::chrono::milliseconds(1));
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

/// The host has waited for what the stream was given.
void end(cudaStream_t stream) {
  machine().flights.end(std::exchange(stream->past, {}));
}

/// Or for the event.
cudaError_t ended(cudaEvent_t event) {
  machine().flights.end(event->happening->past);
  return cudaSuccess;
}

/// What marks that an event has happened. The caller holds the mutex.
Polled marking(const std::shared_ptr<Happening> &its) {
  return [its] {
    its->done = true;
    its->when = machine().happenings;
    return true;
  };
}

} // namespace

namespace mtplan::emulator {

void setPace(Pace pace) {
  const std::lock_guard lock(machine().mutex);
  machine().pace = pace;
}

void setThreads(int count) {
  const std::lock_guard lock(machine().mutex);
  machine().threads = count;
}

void setDevices(int count) {
  const std::lock_guard lock(machine().mutex);
  machine().devices = count;
}

cudaError_t whyHomeless() {
  return machine().devices > 1 && !hasSaidWhich ? cudaErrorDeviceUninitialized
                                                : cudaSuccess;
}

cudaError_t whyElsewhere(cudaStream_t stream) {
  if (const cudaError_t why = whyHomeless(); why != cudaSuccess)
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

void setTimesInGraphs(bool areTold) {
  const std::lock_guard lock(machine().mutex);
  machine().timesInGraphs = areTold;
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
  if (const cudaError_t why = whyHomeless(); why != cudaSuccess)
    return why;
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
  if (const cudaError_t why = whyHomeless(); why != cudaSuccess)
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
  machine().flights.endAll(currentDevice);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
  if (const cudaError_t why = whyHomeless(); why != cudaSuccess)
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
  if (stream->captured) {
    const cudaError_t status =
        put(stream, [] { return Polled([] { return true; }); });
    event->captured = stream->captured;
    event->node = stream->last;
    return status;
  }
  event->happening = std::make_shared<Happening>();
  event->captured = nullptr;
  {
    const std::lock_guard lock(machine().mutex);
    event->happening->past = stream->past;
  }
  return put(stream, [its = event->happening] { return marking(its); });
}
// Whether an external event has happened is known of its graph's last launch,
// once that has come to it, and until then of the launch before.
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
                                     unsigned flags) {
  if (flags != cudaEventRecordExternal || !stream->captured ||
      event->device != stream->device)
    return cudaEventRecord(event, stream);
  event->happening = nullptr;
  event->captured = nullptr;
  event->isOfGraph = true;
  return put(stream, [event] {
    return Polled([event] {
      if (!event->happening)
        event->happening = std::make_shared<Happening>();
      return marking(event->happening)();
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
    if (!one->keepsTime || !one->happening)
      return cudaErrorInvalidResourceHandle;
    if (!one->happening->done)
      return cudaErrorNotReady;
  }
  *ms = static_cast<float>(end->happening->when) -
        static_cast<float>(start->happening->when);
  return cudaSuccess;
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
  if (!event->happening)
    return cudaSuccess;
  {
    const std::lock_guard lock(machine().mutex);
    machine().flights.add(stream->past, event->happening->past);
  }
  return put(stream, [its = event->happening] {
    return Polled([its] { return its->done; });
  });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const cudaError_t why = whyHomeless(); why != cudaSuccess)
    return why;
  if (event->captured)
    return cudaErrorCapturedEvent;
  if (isForbidden())
    return cudaErrorStreamCaptureUnsupported;
  const WithinReach reach;
  const std::lock_guard lock(machine().mutex);
  if (!event->happening)
    return cudaSuccess;
  if (event->happening->done)
    return ended(event);
  machine().advanceAny(nullptr);
  return event->happening->done ? ended(event) : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event->captured)
    return cudaErrorCapturedEvent;
  if (isForbidden())
    return cudaErrorStreamCaptureUnsupported;
  if (!event->happening)
    return cudaSuccess;
  runUntil([its = event->happening] { return its->done; });
  const std::lock_guard lock(machine().mutex);
  return ended(event);
}

/// Whether this thread may not do what would have to wait.
bool emulatorIsCapturing() { return isForbidden(); }

} // extern "C"
