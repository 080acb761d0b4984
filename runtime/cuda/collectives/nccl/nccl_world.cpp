//===- nccl_world.cpp - Ranks that have a device each, by NCCL ------------===//
//
// The host's world brings them together: it carries the ids of communicators,
// holds the calls of a rank to those of the others when the watchdog asks, and
// tells all why one has failed.
//
// A communicator is made of its own ids, not split from one of all ranks: those
// that do not belong to a group do not ask for it, and a split needs all.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <exception>
#include <map>

#include "runtime/cuda/collectives/carrier.h"
#include "runtime/cuda/collectives/nccl/nccl_group.h"
#include "runtime/cuda/collectives/nccl/nccl_recording.h"
#include "runtime/cuda/collectives/one_device_group.h"

namespace mtplan::runtime::cuda {

namespace {

/// The first that has ncclCommInitRankScalable. Programs are linked with newer
/// ones, and start with what the machine has.
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

  /// After all collectives and receipts of this rank, on whichever stream.
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
  using LineKey = std::pair<int, int>; ///< the other rank and the channel

  std::shared_ptr<NcclLink> newLink(NcclLink::Party party, NcclLink::Ask ask);
  NcclLink::Party partyOfLine(int from, int to, int channel, int place,
                              const ncclUniqueId &id) const;
  OutgoingLine &lineTo(const std::string &label, int to, int channel);
  NcclLink &lineFrom(const std::string &label, int from, int channel);
  std::vector<std::shared_ptr<OutgoingLine>> outgoingLines() const;
  void awaitCalls();
  void awaitReceipts();
  void close();

  World &host;
  const SharedContext context;
  Watchdog watchdog;
  const int unwinding;
  std::vector<std::shared_ptr<NcclLink>> links; ///< but for lines to others
  std::map<LineKey, std::shared_ptr<OutgoingLine>> outgoing;
  std::map<LineKey, NcclLink *> incoming;
};

// After an exception others may never come to what is under way.
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

std::shared_ptr<NcclLink> NcclWorld::newLink(NcclLink::Party party,
                                             NcclLink::Ask ask) {
  auto link =
      std::make_shared<NcclLink>(watchdog, std::move(party), std::move(ask));
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
  // Nobody to talk to.
  if (ranks.size() == 1)
    return std::make_unique<OneDeviceGroup>(host.group(name, ranks), its,
                                            context);
  ncclUniqueId id{};
  if (place % kPlacesOfALead == 0)
    id = newUniqueId();
  std::vector<ncclUniqueId> all(ranks.size());
  twin->allGather("id of NCCL", &id, all.data(), kId);
  NcclLink::Party party{wordsOf(its), twin->size(), place, {}};
  for (std::size_t lead = 0; lead < all.size(); lead += kPlacesOfALead)
    party.ids.push_back(all[lead]);
  const auto link = newLink(std::move(party), [twin](const std::string &what) {
    const std::int32_t here = twin->place();
    std::vector<std::int32_t> there(static_cast<std::size_t>(twin->size()));
    twin->allGather(what, &here, there.data(), {ElementType::i32, 1, 1});
  });
  link->awaitMade();
  return std::make_unique<NcclGroup>(link, its, place, context);
}

NcclLink::Party NcclWorld::partyOfLine(int from, int to, int channel, int place,
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
    // Nothing more is sent there: who asks waits until the host's patience
    // ends.
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
    throw CommunicationError('"' + label + "\": rank " + std::to_string(to) +
                             " sends to itself, which GPUs do not");
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

std::vector<std::shared_ptr<OutgoingLine>> NcclWorld::outgoingLines() const {
  std::vector<std::shared_ptr<OutgoingLine>> all;
  all.reserve(outgoing.size());
  for (const auto &[key, line] : outgoing)
    all.push_back(line);
  return all;
}

// What was sent will be received whether or not this rank goes on.
void NcclWorld::beginRecording() {
  awaitReceipts();
  for (const auto &[key, line] : outgoing)
    line->beginRecording();
}

std::unique_ptr<RecordedCalls> NcclWorld::endRecording() {
  return std::make_unique<NcclRecording>(watchdog, context, links,
                                         outgoingLines());
}

// All communicators at the same time: their ranks need not have them in the
// same order.
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
