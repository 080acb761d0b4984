//===- threads.cpp - Ranks as threads of one process ----------------------===//

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/communicator/call.h"
#include "runtime/communicator/hub.h"
#include "runtime/communicator/reduce.h"
#include "runtime/communicator/thread_group.h"

namespace mtplan::runtime {
namespace {

/// Holds the messages to one rank, by sender and channel, in order. A sender
/// copies directly into the buffer of a receiver that already waits.
class Mailbox {
public:
  Mailbox(Hub &hub, int owner);

  void send(const std::string &label, const void *data, std::int64_t bytes,
            int from, int channel);
  void receive(const std::string &label, void *data, std::int64_t bytes,
               int from, int channel);

  /// Returns an error message if a message was never received.
  std::optional<std::string> leftover();

private:
  struct Message {
    std::string label;
    std::int64_t bytes = 0;
    std::vector<std::byte> data; ///< at least `bytes` bytes
  };
  /// Describes a waiting receiver. A sender either takes the request and
  /// delivers into the receiver's memory, or queues a message because it did
  /// not see the request.
  struct Request {
    const std::string &label;
    void *data;
    std::int64_t bytes;
    enum State { open, taken, delivered, queued };
    std::atomic<State> state{open};
    std::string mismatch; ///< error message; empty if the message matches
  };
  struct Channel {
    std::deque<Message> messages;
    Request *request = nullptr; ///< null while there are messages
    std::vector<std::vector<std::byte>> spare; ///< memory for reuse
  };

  Hub &hub;
  int owner;
  std::mutex mutex;
  std::map<std::pair<int, int>, Channel> channels; ///< by sender and channel
  Gate gate;
};

Mailbox::Mailbox(Hub &itsHub, int itsOwner) : hub(itsHub), owner(itsOwner) {
  hub.add(gate);
}

void Mailbox::send(const std::string &label, const void *data,
                   std::int64_t bytes, int from, int channelNumber) {
  Channel *channel = nullptr;
  Request *request = nullptr;
  Message message;
  {
    const std::lock_guard lock(mutex);
    channel = &channels[{from, channelNumber}];
    request = std::exchange(channel->request, nullptr);
    if (request)
      request->state = Request::taken;
    else if (!channel->spare.empty()) {
      message.data = std::move(channel->spare.back());
      channel->spare.pop_back();
    }
  }
  if (request) {
    // The receiver keeps the request alive until its state is `delivered`.
    const auto words =
        mismatchOfTransfer(from, owner, channelNumber, label, bytes,
                           request->label, request->bytes);
    if (words)
      request->mismatch = *words;
    else
      copyRows(request->data, bytes, data, bytes, 1, bytes);
    request->state = Request::delivered;
    gate.wake();
    if (words)
      throw CommunicationError(*words);
    return;
  }
  message.label = label;
  message.bytes = bytes;
  if (message.data.size() < static_cast<std::size_t>(bytes))
    message.data = std::vector<std::byte>(bytes);
  copyRows(message.data.data(), bytes, data, bytes, 1, bytes);
  {
    const std::lock_guard lock(mutex);
    channel->messages.push_back(std::move(message));
    if (Request *const late = std::exchange(channel->request, nullptr))
      late->state = Request::queued;
  }
  gate.wake();
}

void Mailbox::receive(const std::string &label, void *data, std::int64_t bytes,
                      int from, int channelNumber) {
  Channel *channel = nullptr;
  Request request{label, data, bytes, {Request::open}, {}};
  {
    const std::lock_guard lock(mutex);
    channel = &channels[{from, channelNumber}];
    if (channel->messages.empty())
      channel->request = &request;
    else
      request.state = Request::queued;
  }
  Hub::Await wait;
  wait.rank = owner;
  wait.what = [&] { return wordsOfReceive(label, bytes, from, channelNumber); };
  wait.missing = [&] {
    return request.state == Request::open ? std::vector{from}
                                          : std::vector<int>();
  };
  wait.withdraw = [&] {
    const std::lock_guard lock(mutex);
    if (request.state != Request::open)
      return false;
    channel->request = nullptr;
    return true;
  };
  hub.await(gate, wait, [&] { return request.state != Request::open; });
  hub.awaitSurely(gate, [&] { return request.state != Request::taken; });
  if (request.state == Request::delivered) {
    if (!request.mismatch.empty())
      throw CommunicationError(request.mismatch);
    return;
  }

  Message message;
  {
    const std::lock_guard lock(mutex);
    message = std::move(channel->messages.front());
    channel->messages.pop_front();
  }
  if (const auto words =
          mismatchOfTransfer(from, owner, channelNumber, message.label,
                             message.bytes, label, bytes))
    throw CommunicationError(*words);
  copyRows(data, bytes, message.data.data(), bytes, 1, bytes);
  const std::lock_guard lock(mutex);
  channel->spare.push_back(std::move(message.data));
}

std::optional<std::string> Mailbox::leftover() {
  const std::lock_guard lock(mutex);
  for (const auto &[from, channel] : channels)
    if (!channel.messages.empty()) {
      const Message &first = channel.messages.front();
      return "rank " + std::to_string(owner) + " ended without " +
             wordsOfReceive(first.label, first.bytes, from.first, from.second);
    }
  return std::nullopt;
}

class Process {
public:
  Process(int ranks, const WorldOptions &options) : hub(ranks, options) {
    for (int rank = 0; rank < ranks; ++rank)
      mailboxes.push_back(std::make_unique<Mailbox>(hub, rank));
  }

  /// Returns the group's rendezvous `number`. Ranks may create a group several
  /// times, each time with its own rendezvous.
  std::shared_ptr<Rendezvous> rendezvous(const GroupName &group,
                                         std::size_t number) {
    const std::lock_guard lock(mutex);
    auto &known = rendezvousByGroup[group];
    while (known.size() <= number)
      known.push_back(std::make_shared<Rendezvous>(hub, group));
    return known[number];
  }

  Hub hub;
  std::vector<std::unique_ptr<Mailbox>> mailboxes; ///< by receiver

private:
  std::mutex mutex;
  std::map<GroupName, std::vector<std::shared_ptr<Rendezvous>>>
      rendezvousByGroup;
};

class ThreadWorld final : public World {
public:
  ThreadWorld(Process &itsProcess, int rank)
      : process(itsProcess), its(rank), everybody(join({"world", allRanks()})) {
  }

  int size() const override { return process.hub.ranks(); }
  int rank() const override { return its; }

  std::unique_ptr<Communicator> group(const std::string &name,
                                      const std::vector<int> &ranks) override {
    return std::make_unique<ThreadGroup>(join({name, ranks}));
  }

  void send(const std::string &label, const void *data, std::int64_t bytes,
            int to, int channel) override {
    checkTransfer(label, bytes, to, channel, size());
    process.hub.throwIfFailed();
    process.mailboxes[to]->send(label, data, bytes, its, channel);
  }

  void receive(const std::string &label, void *data, std::int64_t bytes,
               int from, int channel) override {
    checkTransfer(label, bytes, from, channel, size());
    process.mailboxes[its]->receive(label, data, bytes, from, channel);
  }

  void barrier(const std::string &label) override { everybody.barrier(label); }

  std::chrono::milliseconds patience() const override {
    return process.hub.options().patience;
  }
  void check() override { process.hub.throwIfFailed(); }

  void fail(const std::string &why) noexcept override {
    process.hub.fail(its, why);
  }

private:
  std::vector<int> allRanks() const {
    std::vector<int> ranks(size());
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }

  ThreadGroup join(const GroupName &group) {
    const int place = placeIn(group, its, size());
    return {process.rendezvous(group, asked[group]++), place};
  }

  Process &process;
  int its;
  std::map<GroupName, std::size_t> asked; ///< number of requests per group
  ThreadGroup everybody;
};

struct Ending {
  std::exception_ptr error;
  bool echoes = false;
};

Ending runRank(Process &process, int rank,
               const std::function<void(World &)> &body) noexcept {
  Ending ending;
  try {
    ThreadWorld world(process, rank);
    body(world);
  } catch (const Echo &) {
    ending = {std::current_exception(), true};
  } catch (const std::exception &error) {
    ending = {std::current_exception(), false};
    process.hub.fail(rank, error.what());
  } catch (...) {
    ending = {std::current_exception(), false};
    process.hub.fail(rank, "an unknown exception");
  }
  return ending;
}

/// Ends the process, because threads cannot be ended from outside.
[[noreturn]] void endProcess(const Hub &hub, const std::vector<int> &busy) {
  try {
    hub.echo();
  } catch (const Echo &echo) {
    std::fprintf(stderr, "%s\n", echo.what());
  }
  std::fprintf(stderr,
               "%s did not end within %s after that; the process "
               "ends\n",
               wordsOf(busy).c_str(), wordsOf(hub.options().ending).c_str());
  std::fflush(nullptr);
  std::_Exit(EXIT_FAILURE);
}

} // namespace

void runOnThreads(int ranks, const WorldOptions &options,
                  const std::function<void(World &)> &body) {
  if (ranks < 1)
    throw CommunicationError("no run has " + std::to_string(ranks) + " ranks");
  Process process(ranks, options);
  std::vector<Ending> endings(ranks);
  std::vector<std::thread> threads;
  threads.reserve(ranks);
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      endings[rank] = runRank(process, rank, body);
      process.hub.end(rank);
    });
  const std::vector<int> busy = process.hub.awaitEnds(options.ending);
  if (!busy.empty())
    endProcess(process.hub, busy);
  for (std::thread &thread : threads)
    thread.join();

  for (const bool echoes : {false, true})
    for (const Ending &ending : endings)
      if (ending.error && ending.echoes == echoes)
        std::rethrow_exception(ending.error);
  process.hub.throwIfFailed();
  for (const auto &mailbox : process.mailboxes)
    if (const auto words = mailbox->leftover())
      throw CommunicationError(*words);
}

} // namespace mtplan::runtime
