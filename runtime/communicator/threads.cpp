//===- threads.cpp - Ranks as threads of one process ----------------------===//

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "runtime/communicator/hub.h"
#include "runtime/communicator/mailbox.h"
#include "runtime/communicator/rendezvous.h"
#include "runtime/communicator/thread_group.h"

namespace mtplan::runtime {
namespace {

/// State that all threads share.
class Process {
public:
  Process(int ranks, const WorldOptions &options) : hub(ranks, options) {
    for (int rank = 0; rank < ranks; ++rank)
      mailboxes.push_back(std::make_unique<Mailbox>(hub, rank));
  }

  /// Returns the `number`th rendezvous that a rank asks for under this name.
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

/// How a rank's thread ended.
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
    process.hub.fail(rank, "an exception without words");
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
