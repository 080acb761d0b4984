//===- nccl_world.cpp - Ranks with one GPU each, over NCCL ----------------===//

#include <algorithm>
#include <exception>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/cuda/collectives/carrier.h"
#include "runtime/cuda/collectives/nccl/nccl_group.h"
#include "runtime/cuda/collectives/nccl/nccl_link.h"
#include "runtime/cuda/collectives/nccl/nccl_mail.h"
#include "runtime/cuda/collectives/one_device_world.h"

namespace mtplan::runtime::cuda {
namespace {

/// Identifies a line by the other rank and the channel.
using LineKey = std::pair<int, int>;
using OutgoingLines = std::map<LineKey, std::shared_ptr<OutgoingLine>>;

/// Holds the calls and messages of a rank that a graph has captured. In every
/// launch of the graph, the watchdog monitors the captured collectives and
/// receives.
class NcclRecording final : public RecordedCalls {
public:
  /// Ends a recording: makes the context's stream 0 wait for all captured
  /// messages. The capture of the stream must not have ended yet.
  /// \param theWatchdog  must outlive the recording
  NcclRecording(const Watchdog &theWatchdog, SharedContext theContext,
                const std::vector<std::shared_ptr<NcclLink>> &links,
                const OutgoingLines &outgoing)
      : watchdog(theWatchdog), context(std::move(theContext)),
        launch(std::make_shared<GraphLaunch>()) {
    for (const auto &link : links)
      if (std::vector<CallInFlight> its = link->takeRecorded(); !its.empty())
        calls.emplace_back(link, std::move(its));
    for (const auto &[key, line] : outgoing)
      if (line->endRecording(context->stream(0).get()))
        lines.push_back(line);
  }

  void repeat() override {
    watchdog.check();
    cudaStream_t stream = context->stream(0).get();
    for (const auto &line : lines)
      line->waitForSends(stream);
    // Waiting for the calls of the last launch costs little, because the device
    // has later work queued.
    for (const auto &[link, its] : calls)
      while (!link->haveEnded(*launch))
        awaitAMoment(watchdog);
    MTPLAN_CUDA(cudaEventRecord(launch->before.get(), stream));
  }

  void repeated() override {
    cudaStream_t stream = context->stream(0).get();
    MTPLAN_CUDA(cudaEventRecord(launch->behind.get(), stream));
    for (const auto &[link, its] : calls)
      link->repeat(its, launch);
  }

private:
  const Watchdog &watchdog;
  const SharedContext context;
  const std::shared_ptr<GraphLaunch> launch;
  std::vector<std::pair<std::shared_ptr<NcclLink>, std::vector<CallInFlight>>>
      calls;
  std::vector<std::shared_ptr<OutgoingLine>> lines; ///< lines with captured
                                                    ///< sends
};

/// Names the first version of NCCL with ncclCommInitRankScalable. A program
/// that was linked with a newer version may find an older library on another
/// machine.
constexpr int kOldestLibrary = NCCL_VERSION(2, 23, 0);

std::string wordsOfVersion(int version) {
  return std::to_string(version / 10000) + '.' +
         std::to_string(version / 100 % 100);
}

void checkLibrary() {
  int version = 0;
  if (ncclGetVersion(&version) == ncclSuccess && version < kOldestLibrary)
    throw CommunicationError("this machine has NCCL " +
                             wordsOfVersion(version) + ", and mtrun needs " +
                             wordsOfVersion(kOldestLibrary) + " or later");
}

constexpr Pieces kId = {ElementType::i32, 1, sizeof(ncclUniqueId) / 4};

/// Connects ranks that each have their own GPU. The host's world transfers the
/// ids of communicators, compares the ranks' calls after a timeout, and reports
/// the cause of a failure to all ranks. Each communicator has its own ids.
/// ncclCommSplit is not used, because all ranks would have to call this
/// function, but only the ranks of a group create the group.
class NcclWorld final : public World {
public:
  NcclWorld(World &theHost, SharedContext theContext)
      : host(theHost), context(std::move(theContext)), watchdog(theHost),
        unwinding(std::uncaught_exceptions()) {}
  ~NcclWorld() override;

  int size() const override { return host.size(); }
  int rank() const override { return host.rank(); }

  std::unique_ptr<Communicator> group(const std::string &name,
                                      const std::vector<int> &ranks) override;
  void send(const std::string &label, const void *data, std::int64_t bytes,
            int to, int channel) override;
  void receive(const std::string &label, void *data, std::int64_t bytes,
               int from, int channel) override;

  /// Waits for all collectives and receives of this rank on all streams, and
  /// then for the other ranks.
  void barrier(const std::string &label) override {
    awaitCalls();
    host.barrier(label);
  }

  void beginStep(std::int64_t step) override { watchdog.beginStep(step); }

  std::chrono::milliseconds patience() const override {
    return host.patience();
  }
  void check() override {
    watchdog.check();
    host.check();
  }
  void beginRecording() override;
  std::unique_ptr<RecordedCalls> endRecording() override;
  void fail(const std::string &why) noexcept override { host.fail(why); }

private:
  std::shared_ptr<NcclLink> newLink(NcclLink::Members members,
                                    NcclLink::Ask ask);
  NcclLink::Members partyOfLine(int from, int to, int channel, int place,
                                const ncclUniqueId &id) const;
  OutgoingLine &lineTo(const std::string &label, int to, int channel);
  NcclLink &lineFrom(const std::string &label, int from, int channel);
  void awaitCalls();
  void awaitReceipts();
  void close();

  World &host;
  const SharedContext context;
  Watchdog watchdog;
  const int unwinding;
  std::vector<std::shared_ptr<NcclLink>> links; ///< groups, incoming lines
  OutgoingLines outgoing;
  std::map<LineKey, NcclLink *> incoming;
};

// After an exception the communicators are aborted instead of closed, because
// other ranks may never make the matching calls.
NcclWorld::~NcclWorld() {
  if (std::uncaught_exceptions() == unwinding)
    try {
      close();
    } catch (...) {
      watchdog.fail();
    }
  watchdog.stop();
  watchdog.abortAll();
}

std::shared_ptr<NcclLink> NcclWorld::newLink(NcclLink::Members members,
                                             NcclLink::Ask ask) {
  auto link =
      std::make_shared<NcclLink>(watchdog, std::move(members), std::move(ask));
  links.push_back(link);
  watchdog.add(link);
  return link;
}

std::unique_ptr<Communicator> NcclWorld::group(const std::string &name,
                                               const std::vector<int> &ranks) {
  watchdog.check();
  const GroupName its{name, ranks};
  std::shared_ptr<Communicator> twin = host.group(name, ranks);
  const int place = twin->place();
  // A group of one rank needs no NCCL communicator.
  if (ranks.size() == 1)
    return std::make_unique<OneDeviceGroup>(host.group(name, ranks), its,
                                            context);
  ncclUniqueId id{};
  if (place % kPlacesOfALead == 0)
    id = newUniqueId();
  std::vector<ncclUniqueId> all(ranks.size());
  twin->allGather("id of NCCL", &id, all.data(), kId);
  NcclLink::Members members{wordsOf(its), twin->size(), place, {}};
  for (std::size_t lead = 0; lead < all.size(); lead += kPlacesOfALead)
    members.ids.push_back(all[lead]);
  const auto link =
      newLink(std::move(members), [twin](const std::string &what) {
        const std::int32_t here = twin->place();
        std::vector<std::int32_t> there(static_cast<std::size_t>(twin->size()));
        twin->allGather(what, &here, there.data(), {ElementType::i32, 1, 1});
      });
  link->awaitMade();
  return std::make_unique<NcclGroup>(link, its, place, context);
}

NcclLink::Members NcclWorld::partyOfLine(int from, int to, int channel,
                                         int place,
                                         const ncclUniqueId &id) const {
  return {"the line from rank " + std::to_string(from) + " to rank " +
              std::to_string(to) + " on channel " + std::to_string(channel),
          2,
          place,
          {id}};
}

OutgoingLine &NcclWorld::lineTo(const std::string &label, int to, int channel) {
  if (const auto found = outgoing.find({to, channel}); found != outgoing.end())
    return *found->second;
  const ncclUniqueId id = newUniqueId();
  host.send(label, &id, sizeof(id), to, channel);
  auto line = std::make_shared<OutgoingLine>(
      watchdog, partyOfLine(rank(), to, channel, 0, id), context);
  watchdog.add(line);
  return *outgoing.emplace(LineKey{to, channel}, std::move(line)).first->second;
}

NcclLink &NcclWorld::lineFrom(const std::string &label, int from, int channel) {
  NcclLink *&line = incoming[{from, channel}];
  if (!line) {
    ncclUniqueId id{};
    host.receive(label, &id, sizeof(id), from, channel);
    // The sender sends no further host messages, so this receive always times
    // out with an error that names the sender.
    line = newLink(partyOfLine(from, rank(), channel, 1, id),
                   [this, from, channel](const std::string &what) {
                     host.receive(what, nullptr, 0, from, channel);
                   })
               .get();
    line->awaitMade();
  }
  return *line;
}

void NcclWorld::send(const std::string &label, const void *data,
                     std::int64_t bytes, int to, int channel) {
  checkTransfer(label, bytes, to, channel, size());
  watchdog.check();
  if (to == rank())
    throw CommunicationError(
        '"' + label + "\": rank " + std::to_string(to) +
        " sends to itself, which is not supported on GPUs");
  lineTo(label, to, channel).send(label, data, bytes);
}

void NcclWorld::receive(const std::string &label, void *data,
                        std::int64_t bytes, int from, int channel) {
  checkTransfer(label, bytes, from, channel, size());
  watchdog.check();
  NcclLink &line = lineFrom(label, from, channel);
  cudaStream_t stream = context->stream().get();
  line.begin(label + " of " + std::to_string(bytes) + " bytes on GPUs", stream);
  if (bytes > 0)
    line.call([&](ncclComm_t comm) {
      return ncclRecv(data, static_cast<std::size_t>(bytes), ncclUint8, 0, comm,
                      stream);
    });
  line.end(stream);
}

void NcclWorld::awaitCalls() {
  for (const auto &link : links)
    while (!link->isIdle())
      awaitAMoment(watchdog);
}

void NcclWorld::awaitReceipts() {
  for (const auto &[key, line] : outgoing) {
    const auto deadline = Ward::Clock::now() + host.patience();
    while (!line->isIdle()) {
      if (Ward::Clock::now() > deadline)
        throw CommunicationError("rank " + std::to_string(key.first) +
                                 " did not receive " + line->wordsOfOldest() +
                                 " from rank " + std::to_string(rank()) +
                                 " on channel " + std::to_string(key.second) +
                                 " within " + wordsOf(host.patience()));
      awaitAMoment(watchdog);
    }
  }
}

// The wait cannot deadlock, because the other ranks receive all sent messages
// even while this rank waits.
void NcclWorld::beginRecording() {
  awaitReceipts();
  for (const auto &[key, line] : outgoing)
    line->beginRecording();
}

std::unique_ptr<RecordedCalls> NcclWorld::endRecording() {
  return std::make_unique<NcclRecording>(watchdog, context, links, outgoing);
}

// Closes all communicators concurrently, because ranks may have created them in
// different orders.
void NcclWorld::close() {
  awaitCalls();
  awaitReceipts();
  std::vector<NcclLink *> all;
  all.reserve(links.size() + outgoing.size());
  for (const auto &link : links)
    all.push_back(link.get());
  for (const auto &[key, line] : outgoing)
    all.push_back(&line->link());
  for (NcclLink *link : all)
    link->beginToClose();
  for (NcclLink *link : all)
    while (!link->isClosed())
      awaitAMoment(watchdog);
  watchdog.stop();
  for (NcclLink *link : all)
    link->close();
}

} // namespace

std::unique_ptr<World> makeNcclWorld(World &host,
                                     const SharedContext &context) {
  checkLibrary();
  return std::make_unique<NcclWorld>(host, context);
}

} // namespace mtplan::runtime::cuda
