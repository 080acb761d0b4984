//===- nccl_link.cpp - An NCCL communicator -------------------------------===//

#include "runtime/cuda/collectives/nccl/nccl_link.h"

#include <algorithm>
#include <string>
#include <utility>

#include <nccl.h>

#include "runtime/communicator/call.h"
#include "runtime/cuda/collectives/registration.h"
#include "runtime/cuda/device_error.h"

namespace mtplan::runtime::cuda {
namespace {

/// Returns whether `event`, which a graph records, has happened since `launch`.
/// The event `launch` was recorded right before the graph was launched, and
/// must have happened. Until the graph reaches `event`, the time stamp of
/// `event` is undefined or belongs to an earlier launch. Returns none if the
/// device does not report the event.
std::optional<bool> hasHappenedSince(const Event &launch, const Event &event) {
  cudaError_t status = cudaEventQuery(event.get());
  float milliseconds = 0.0F;
  if (status == cudaSuccess)
    status = cudaEventElapsedTime(&milliseconds, launch.get(), event.get());
  if (status == cudaSuccess)
    return milliseconds >= 0.0F;
  cudaGetLastError(); // resets the status
  if (status == cudaErrorNotReady || status == cudaErrorInvalidResourceHandle)
    return false;
  return std::nullopt;
}

/// This number multiplies the timeout while a communicator is created, because
/// the creation loads libraries and opens connections.
constexpr int kPatienceToMake = 10;

CommunicationError faultOf(const std::string &where, ncclResult_t result,
                           ncclComm_t comm) {
  std::string words = where + ": NCCL reports: " + ncclGetErrorString(result);
  if (const char *last = comm ? ncclGetLastError(comm) : nullptr;
      last && *last != '\0')
    words += std::string(" (") + last + ')';
  return CommunicationError(words);
}

void freePlain(void *data) noexcept { cudaFree(data); }

} // namespace

std::string CallInFlight::words() const {
  return step == 0 ? what : "step " + std::to_string(step) + ", " + what;
}

bool CallInFlight::hasBegun() const {
  if (!launch)
    return marks->begun.hasHappened();
  return launch->before.hasHappened() &&
         hasHappenedSince(launch->before, marks->begun).value_or(true);
}

bool CallInFlight::hasEnded() const {
  if (!launch)
    return marks->ended.hasHappened();
  return launch->behind.hasHappened() ||
         (launch->before.hasHappened() &&
          hasHappenedSince(launch->before, marks->ended).value_or(false));
}

ncclUniqueId newUniqueId() {
  ncclUniqueId id;
  if (const ncclResult_t result = ncclGetUniqueId(&id); result != ncclSuccess)
    throw faultOf("a new communicator", result, nullptr);
  return id;
}

NcclLink::NcclLink(const Watchdog &theWatchdog, Members theMembers, Ask theAsk)
    : watchdog(theWatchdog), members(std::move(theMembers)),
      ask(std::move(theAsk)) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  std::vector<ncclUniqueId> ids = members.ids;
  const ncclResult_t result = ncclCommInitRankScalable(
      &comm, members.size, members.place, static_cast<int>(ids.size()),
      ids.data(), &config);
  if (result != ncclSuccess && result != ncclInProgress) {
    const CommunicationError fault = faultOf(members.name, result, comm);
    abort();
    throw fault;
  }
}

ncclResult_t NcclLink::state() {
  ncclResult_t result = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(comm, &result);
  return asked == ncclSuccess ? result : asked;
}

void NcclLink::throwGone() const {
  watchdog.check();
  throw CommunicationError(members.name + ": an earlier call has failed");
}

void NcclLink::throwFault(ncclResult_t result) {
  throw faultOf((flights.empty() ? "" : flights.front().words() + ", in ") +
                    members.name + ", on rank " +
                    std::to_string(watchdog.world().rank()),
                result, comm);
}

void NcclLink::checkResult(ncclResult_t result) {
  if (result != ncclSuccess && result != ncclInProgress)
    throwFault(result);
}

bool NcclLink::isReady() {
  const std::lock_guard lock(mutex);
  if (!comm)
    throwGone();
  const ncclResult_t result = state();
  checkResult(result);
  return result == ncclSuccess;
}

void NcclLink::awaitMade() {
  const auto patience = watchdog.world().patience() * kPatienceToMake;
  const auto deadline = Clock::now() + patience;
  while (!isReady()) {
    if (Clock::now() > deadline)
      throw CommunicationError(
          members.name + ": NCCL did not create the communicator within " +
          wordsOf(patience));
    awaitAMoment(watchdog);
  }
}

void NcclLink::settle() {
  while (!isReady())
    awaitAMoment(watchdog);
}

void NcclLink::registerMemory(void *data, std::size_t bytes) {
  std::unique_lock lock(mutex);
  if (!comm)
    throwGone();
  const ncclResult_t result =
      ncclCommRegister(comm, data, bytes, &registrations.emplace_back());
  if (result != ncclSuccess && result != ncclInProgress) {
    registrations.pop_back();
    throw CommunicationError(
        faultOf(
            members.name + ": " + std::to_string(bytes) + " bytes of rank " +
                std::to_string(watchdog.world().rank()) + " are not registered",
            result, comm)
            .what() +
        std::string(kWithoutRegistration));
  }
  lock.unlock();
  settle();
}

std::byte *NcclLink::allocate(std::size_t bytes, bool registered) {
  if (!registered) {
    void *data = nullptr;
    MTPLAN_CUDA(cudaMalloc(&data, bytes));
    return allocated.emplace_back(static_cast<std::byte *>(data), freePlain)
        .get();
  }
  Piece &piece = allocated.emplace_back(
      static_cast<std::byte *>(allocateForNccl(bytes)), releaseForNccl);
  registerMemory(piece.get(), bytes);
  return piece.get();
}

void NcclLink::start(const Make &calls) {
  const std::lock_guard lock(mutex);
  if (!comm)
    throwGone();
  checkResult(ncclGroupStart());
  const ncclResult_t made = calls(comm);
  // NCCL keeps an open group per thread, so ncclGroupEnd must be called even
  // after an error.
  const ncclResult_t grouped = ncclGroupEnd();
  checkResult(made);
  checkResult(grouped);
}

void NcclLink::call(const Make &calls) {
  start(calls);
  settle();
}

void NcclLink::begin(const std::string &what, cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  if (!comm)
    throwGone();
  if (captureOf(stream)) {
    CallInFlight &flight = recorded.emplace_back();
    flight.what = what;
    flight.marks = std::make_shared<CallInFlight::Marks>(cudaEventDefault);
    return MTPLAN_CUDA(cudaEventRecordWithFlags(
        flight.marks->begun.get(), stream, cudaEventRecordExternal));
  }
  // Ended calls are removed here too, because many calls may end between two
  // polls of the watchdog.
  forgetEnded();
  CallInFlight &flight = flights.emplace_back();
  flight.what = what;
  flight.step = watchdog.currentStep();
  if (spare.empty()) {
    flight.marks =
        std::make_shared<CallInFlight::Marks>(cudaEventDisableTiming);
  } else {
    flight.marks = std::move(spare.back());
    spare.pop_back();
  }
  MTPLAN_CUDA(cudaEventRecord(flight.marks->begun.get(), stream));
}

void NcclLink::end(cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  if (captureOf(stream))
    return MTPLAN_CUDA(cudaEventRecordWithFlags(
        recorded.back().marks->ended.get(), stream, cudaEventRecordExternal));
  MTPLAN_CUDA(cudaEventRecord(flights.back().marks->ended.get(), stream));
  flights.back().isQueued = true;
}

std::vector<CallInFlight> NcclLink::takeRecorded() {
  const std::lock_guard lock(mutex);
  return std::exchange(recorded, {});
}

bool NcclLink::haveEnded(const GraphLaunch &launch) {
  const std::lock_guard lock(mutex);
  if (!comm)
    throwGone();
  forgetEnded();
  return std::ranges::none_of(flights, [&](const CallInFlight &flight) {
    return flight.launch.get() == &launch;
  });
}

void NcclLink::repeat(const std::vector<CallInFlight> &calls,
                      const std::shared_ptr<const GraphLaunch> &launch) {
  const std::lock_guard lock(mutex);
  if (!comm)
    throwGone();
  for (CallInFlight flight : calls) {
    flight.step = watchdog.currentStep();
    flight.launch = launch;
    flight.isQueued = true;
    flights.push_back(std::move(flight));
  }
}

void NcclLink::forgetEnded() {
  while (!flights.empty() && flights.front().isQueued &&
         flights.front().hasEnded()) {
    if (!flights.front().launch)
      spare.push_back(std::move(flights.front().marks));
    flights.pop_front();
  }
}

bool NcclLink::isIdle() {
  const std::lock_guard lock(mutex);
  if (!comm)
    throwGone();
  forgetEnded();
  return flights.empty();
}

void NcclLink::beginToClose() {
  const std::lock_guard lock(mutex);
  if (!comm)
    throwGone();
  // Memory must be deregistered before ncclCommFinalize, while the other ranks
  // still respond.
  for (; !registrations.empty(); registrations.pop_back())
    checkResult(ncclCommDeregister(comm, registrations.back()));
  checkResult(ncclCommFinalize(comm));
}

bool NcclLink::isClosed() { return isReady(); }

void NcclLink::close() {
  const std::lock_guard lock(mutex);
  if (comm)
    ncclCommDestroy(std::exchange(comm, nullptr));
}

// The mutex is released first, because ncclCommAbort waits for graphs with
// calls of this communicator, and such a graph may end only after other links
// are aborted. Memory is not deregistered, because other ranks may not respond
// any more.
void NcclLink::abort() noexcept {
  std::unique_lock lock(mutex);
  ncclComm_t last = std::exchange(comm, nullptr);
  lock.unlock();
  if (last)
    ncclCommAbort(last);
}

std::optional<std::string> NcclLink::overdue(Clock::time_point now) {
  forgetEnded();
  if (flights.empty())
    return std::nullopt;
  CallInFlight &first = flights.front();
  // The timeout also covers a call that is not queued yet, because the host
  // waits until NCCL has queued the call.
  if (!first.since && (!first.isQueued || first.hasBegun()))
    first.since = now;
  if (!first.since || now - *first.since < watchdog.world().patience())
    return std::nullopt;
  return first.words();
}

void NcclLink::look(Clock::time_point now) {
  std::optional<std::string> late;
  {
    const std::lock_guard lock(mutex);
    if (!comm)
      return;
    checkResult(state());
    late = overdue(now);
  }
  if (!late)
    return;
  ask(*late);
  const std::lock_guard lock(mutex);
  if (comm && overdue(now) == late)
    throw CommunicationError(
        *late + ", in " + members.name +
        ": all ranks have reached it, and it has not ended within " +
        wordsOf(watchdog.world().patience()));
}

void *allocateForNccl(std::size_t bytes) {
  void *data = nullptr;
  if (const ncclResult_t result =
          ncclMemAlloc(&data, std::max<std::size_t>(bytes, 1));
      result != ncclSuccess)
    throw DeviceError("NCCL does not allocate " + std::to_string(bytes) +
                      " bytes: " + ncclGetErrorString(result) +
                      kWithoutRegistration);
  return data;
}

// Unlike cudaFree, ncclMemFree does not wait for the device.
void releaseForNccl(void *data) noexcept {
  cudaDeviceSynchronize();
  ncclMemFree(data);
}

} // namespace mtplan::runtime::cuda
