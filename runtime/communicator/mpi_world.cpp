//===- mpi_world.cpp - Ranks as processes ---------------------------------===//

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>

#include <sys/time.h>
#include <unistd.h>

#include "runtime/communicator/mpi_group.h"
#include "runtime/communicator/mpi_header.h"
#include "runtime/communicator/mpi_link.h"
#include "runtime/communicator/reduce.h"
#include "runtime/communicator/termination.h"

namespace mtplan::runtime {
namespace {

class MpiWorld final : public World {
public:
  explicit MpiWorld(MpiLink &itsLink) : link(itsLink), shared(link.size(), 0) {
    std::vector<int> all(size());
    std::iota(all.begin(), all.end(), 0);
    everybody = join({"world", all});
  }

  int size() const override { return link.size(); }
  int rank() const override { return link.rank(); }

  std::unique_ptr<Communicator> group(const std::string &name,
                                      const std::vector<int> &ranks) override {
    return join({name, ranks});
  }

  void send(const std::string &label, const void *data, std::int64_t bytes,
            int to, int channel) override;
  void receive(const std::string &label, void *data, std::int64_t bytes,
               int from, int channel) override;

  void barrier(const std::string &label) override { everybody->barrier(label); }

  void fail(const std::string &why) noexcept override { link.fail(why); }

  void end();

private:
  /// Groups are asked for in the same order by all that they share, so two
  /// ranks count those that hold both alike: a channel each, without asking.
  std::unique_ptr<MpiGroup> join(GroupName group) {
    const int place = placeIn(group, rank(), size());
    std::vector<int> channels;
    for (const int peer : group.ranks)
      channels.push_back(shared[peer]++);
    return std::make_unique<MpiGroup>(link, std::move(group), place,
                                      std::move(channels));
  }

  void checkChannel(const std::string &label, int channel) const {
    if (channel >= link.channels())
      throw CommunicationError('"' + label + "\": no channel " +
                               std::to_string(channel) + "; there are " +
                               std::to_string(link.channels()) + ", from 0");
  }

  MpiLink &link;
  std::vector<int> shared; ///< by rank, groups with it so far
  std::unique_ptr<MpiGroup> everybody;
};

constexpr auto kTransfer = MpiLink::Traffic::transfer;
constexpr std::int64_t kHeaderBytes = sizeof(TransferHeader);

/// Bytes that go with the header of a message.
std::int64_t inlined(std::int64_t bytes) {
  return bytes <= kInlineBytes ? bytes : 0;
}

void MpiWorld::send(const std::string &label, const void *data,
                    std::int64_t bytes, int to, int channel) {
  checkTransfer(label, bytes, to, channel, size());
  checkChannel(label, channel);
  const TransferHeader header = {HeaderText(label), bytes};
  const char *from = static_cast<const char *>(data);
  std::int64_t at = inlined(bytes);
  std::vector<std::byte> message = link.memory(kHeaderBytes + kInlineBytes);
  std::memcpy(message.data(), &header, sizeof(header));
  copyRows(message.data() + kHeaderBytes, at, from, at, 1, at);
  link.sendOwned(std::move(message), kHeaderBytes + at, to, kTransfer, channel);
  while (at < bytes) {
    const std::int64_t part = std::min(kMessageBytes, bytes - at);
    message = link.memory(part);
    std::memcpy(message.data(), from + at, part);
    link.sendOwned(std::move(message), part, to, kTransfer, channel);
    at += part;
  }
}

void MpiWorld::receive(const std::string &label, void *data, std::int64_t bytes,
                       int from, int channel) {
  checkTransfer(label, bytes, from, channel, size());
  checkChannel(label, channel);
  const auto what = [&] { return wordsOfReceive(label, bytes, from, channel); };
  std::vector<char> first(kHeaderBytes + kInlineBytes);
  const auto room = static_cast<std::int64_t>(first.size());
  MpiLink::Requests requests;
  link.receive(requests, {first.data(), 1, room, room}, from, kTransfer,
               channel);
  link.await(requests, what);
  TransferHeader header;
  std::memcpy(&header, first.data(), sizeof(header));
  if (const auto words =
          mismatchOfTransfer(from, rank(), channel, header.label.text(label),
                             header.bytes, label, bytes))
    throw CommunicationError(*words);
  char *to = static_cast<char *>(data);
  std::int64_t at = inlined(bytes);
  copyRows(to, at, first.data() + kHeaderBytes, at, 1, at);
  while (at < bytes) {
    const std::int64_t part = std::min(kMessageBytes, bytes - at);
    link.receive(requests, {to + at, 1, part, part}, from, kTransfer, channel);
    link.await(requests, what);
    at += part;
  }
}

/// Waits for all to end. Whatever was sent has arrived by then.
void MpiWorld::end() {
  link.end();
  everybody->barrier("the end of the run");
  if (const auto stray = link.stray()) {
    TransferHeader header;
    std::memcpy(&header, stray->message.data(),
                std::min(stray->message.size(), sizeof(header)));
    throw CommunicationError("rank " + std::to_string(rank()) +
                             " ended without " +
                             wordsOfReceive(header.label.text({}), header.bytes,
                                            stray->from, stray->channel));
  }
  link.awaitOwned([] { return std::string("the end of the run"); });
}

/// The launcher may be slow to answer, or not know how to.
void endSoon(std::chrono::milliseconds time) {
  struct sigaction action = {};
  action.sa_handler = [](int) { _exit(EXIT_FAILURE); };
  sigemptyset(&action.sa_mask);
  sigaction(SIGALRM, &action, nullptr);
  itimerval timer = {};
  timer.it_value.tv_usec = 1000 * time.count();
  setitimer(ITIMER_REAL, &timer, nullptr);
}

/// Gives the others the time to say what they have to say, and ends all.
[[noreturn]] void endAll(const WorldOptions &options, int rank,
                         const std::string &why) {
  std::fprintf(stderr, "rank %d: %s\n", rank, why.c_str());
  std::fflush(nullptr);
  std::this_thread::sleep_for(options.ending);
  endSoon(std::chrono::milliseconds(300));
  MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  std::_Exit(EXIT_FAILURE);
}

} // namespace

void runUnderMpi(const WorldOptions &options,
                 const std::function<void(World &)> &body) {
  // Open MPI ends a process, without a word, that reads the memory of another
  // which has died. Through shared memory it waits, and we say for whom; on two
  // cores of a virtual machine that is also twice as fast.
  setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", /*overwrite=*/0);
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  std::optional<MpiLink> link(options);
  if (link->size() == 1 && isUnderMpi())
    endAll(options, 0,
           "was started as one of several processes, but MPI knows of one: "
           "start them with this MPI's mpirun, or with srun --mpi=pmix");
  listenForTermination();
  std::string why;
  try {
    MpiWorld world(*link);
    body(world);
    link->throwIfFailed();
    world.end();
  } catch (const std::exception &error) {
    why = error.what();
  } catch (...) {
    why = "an exception without words";
  }
  if (!why.empty()) {
    link->fail(why);
    endAll(options, link->rank(), why);
  }
  link.reset();
  MPI_Finalize();
}

} // namespace mtplan::runtime
