//===- process_link.cpp - Waiting for messages between processes ----------===//

#include "runtime/communicator/process_link.h"

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <thread>

#include "runtime/communicator/call.h"

namespace mtplan::runtime {
namespace {

using std::chrono::milliseconds;

enum Topic { kFailed, kAsk, kAnswer, kParted };

/// A rank that times out waits this long for the other ranks' states.
constexpr milliseconds kAnswerTime{300};
/// These timeouts hold after SIGTERM; launchers send SIGKILL one second later.
constexpr milliseconds kPatienceWhenTerminated{400};
constexpr milliseconds kAnswerTimeWhenTerminated{100};
/// After SIGTERM, a rank that does not wait runs this long, so that it can
/// answer the ranks that wait.
constexpr milliseconds kTimeWhenTerminated{600};

/// Without owned messages, `carrier` polls for control texts at this interval.
/// Without endProcess, `carrier` polls only while it sends messages.
constexpr milliseconds kGlance{20};

// Parses an answer. The answer is "e" if the rank has ended. Otherwise, it has
// three lines: "w", the call in which the rank waits, and the missing ranks.
Doing doingOf(const std::string &text) {
  Doing doing;
  if (text == "e") {
    doing.state = Doing::ended;
    return doing;
  }
  std::istringstream lines(text);
  std::string word;
  std::getline(lines, word);
  std::getline(lines, doing.wait.what);
  for (int rank = 0; lines >> rank;)
    doing.wait.missing.push_back(rank);
  doing.state = Doing::waiting;
  return doing;
}

} // namespace

struct ProcessLink::Wait {
  const Requests &requests;
  const std::function<std::string()> &what;

  std::vector<int> missing() const {
    std::vector<int> peers;
    for (const Wire::Ticket &ticket : requests)
      peers.push_back(ticket.peer);
    std::sort(peers.begin(), peers.end());
    peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
    return peers;
  }
};

ProcessLink::ProcessLink(
    Wire &itsWire, const WorldOptions &itsOptions,
    std::function<void(const std::string &why)> toEndProcess)
    : wire(itsWire), options(itsOptions), endProcess(std::move(toEndProcess)) {
  answers.resize(size());
  parted.resize(size());
  if (wire.servesThreads())
    carrier = std::thread([this] { carry(); });
}

ProcessLink::~ProcessLink() {
  {
    const std::lock_guard lock(mutex);
    leaving = true;
  }
  ownedCame.notify_one();
  if (carrier.joinable())
    carrier.join();
}

void ProcessLink::carry() {
  std::unique_lock lock(mutex);
  std::optional<Clock::time_point> heard; // time of a failure's arrival
  while (!leaving) {
    const auto due = [&] { return leaving || (!failed && !owned.empty()); };
    if (endProcess)
      ownedCame.wait_for(lock, kGlance, due);
    else
      ownedCame.wait(lock, due);
    if (leaving)
      return;
    if (!failed) {
      try {
        advanceOwned();
        if (waits.empty())
          listen();
      } catch (const CommunicationError &error) {
        remember(rank(), error.what()); // this rank's next call throws
      }
    } else if (failedRank != rank() && endProcess) {
      heard = heard.value_or(Clock::now());
      if (Clock::now() - *heard >= options.ending)
        endProcess("rank " + std::to_string(failedRank) + " failed: " + why);
    }
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    lock.lock();
  }
}

static int tagOf(ProcessLink::Traffic traffic, int channel) {
  return 2 * channel + (traffic == ProcessLink::Traffic::transfer ? 1 : 0);
}

void ProcessLink::send(Requests &requests, const Rows &from, int to,
                       Traffic traffic, int channel) {
  throwIfFailed();
  const std::lock_guard lock(mutex);
  requests.push_back(wire.send(from, to, tagOf(traffic, channel)));
}

void ProcessLink::receive(Requests &requests, const Rows &to, int from,
                          Traffic traffic, int channel) {
  throwIfFailed();
  const std::lock_guard lock(mutex);
  requests.push_back(wire.receive(to, from, tagOf(traffic, channel)));
}

void ProcessLink::sendOwned(std::vector<std::byte> message, std::int64_t bytes,
                            int to, Traffic traffic, int channel) {
  throwIfFailed();
  const std::lock_guard lock(mutex);
  const Rows rows = {reinterpret_cast<char *>(message.data()), 1, bytes, 0};
  const Wire::Ticket ticket = wire.send(rows, to, tagOf(traffic, channel));
  owned.push_back({ticket, std::move(message)});
  advanceOwned();
  if (!owned.empty())
    ownedCame.notify_one();
}

std::vector<std::byte> ProcessLink::memory(std::int64_t bytes) {
  const auto needed = static_cast<std::size_t>(bytes);
  const std::lock_guard lock(mutex);
  const auto fits = std::ranges::find_if(
      spare, [&](const auto &block) { return block.size() >= needed; });
  if (fits == spare.end())
    return std::vector<std::byte>(needed);
  std::vector<std::byte> block = std::move(*fits);
  spare.erase(fits);
  return block;
}

/// Advances the wire and removes completed requests. Returns whether any were
/// complete. The caller must hold the mutex.
bool ProcessLink::advance(Requests &requests) {
  const std::size_t before = requests.size();
  wire.progress();
  std::erase_if(requests,
                [&](Wire::Ticket &ticket) { return wire.isThrough(ticket); });
  return requests.size() < before;
}

/// Advances the wire, and keeps the memory of sent messages for reuse. The
/// caller must hold the mutex.
void ProcessLink::advanceOwned() {
  wire.progress();
  std::erase_if(owned, [&](Owned &own) {
    const bool through = wire.isThrough(own.ticket);
    if (through)
      spare.push_back(std::move(own.message));
    return through;
  });
}

/// Sends a control text to all other ranks. The caller must hold the mutex.
void ProcessLink::tellAll(int topic, const std::string &text) {
  for (int other = 0; other < size(); ++other)
    if (other != rank())
      wire.sendControl(other, topic, text);
}

/// Receives and answers control texts. The caller must hold the mutex.
void ProcessLink::listen() {
  while (const std::optional<Wire::Control> control = wire.nextControl())
    obey(*control);
}

void ProcessLink::obey(const Wire::Control &control) {
  switch (control.topic) {
  case kFailed:
    remember(control.from, control.text);
    break;
  case kAsk:
    if (const std::string doing = ownDoing(); !doing.empty())
      wire.sendControl(control.from, kAnswer, doing);
    break;
  case kAnswer:
    answers[control.from] = doingOf(control.text);
    break;
  case kParted:
    parted[control.from] = true;
    break;
  }
}

/// Returns this rank's state in the form that doingOf() parses; "" while the
/// rank computes.
std::string ProcessLink::ownDoing() const {
  if (ended)
    return "e";
  for (const Wait *wait : waits) {
    const std::vector<int> missing = wait->missing();
    if (missing.empty())
      continue;
    std::string text = "w\n" + wait->what() + '\n';
    for (const int rank : missing)
      text += std::to_string(rank) + ' ';
    return text;
  }
  return {};
}

/// Makes this rank fail once kTimeWhenTerminated has passed since the rank
/// noticed SIGTERM, even if no wait times out. A rank that outlives SIGTERM
/// does not fail.
void ProcessLink::obeyTermination() {
  if (!isTerminated() || options.outlivesTermination)
    return;
  const auto now = Clock::now().time_since_epoch();
  Clock::rep first = 0;
  if (terminatedAt.compare_exchange_strong(first, now.count()) ||
      now - Clock::duration(first) < kTimeWhenTerminated)
    return;
  const std::string reason = "received SIGTERM";
  fail(reason);
  throw CommunicationError(reason);
}

void ProcessLink::await(Requests &requests,
                        const std::function<std::string()> &what) {
  if (!ended)
    obeyTermination();
  const Wait wait{requests, what};
  struct Shown {
    ProcessLink &link;
    const Wait &wait;
    ~Shown() {
      const std::lock_guard lock(link.mutex);
      std::erase(link.waits, &wait);
    }
  };
  {
    const std::lock_guard lock(mutex);
    if (advance(requests), requests.empty())
      return;
    waits.push_back(&wait);
  }
  const Shown shown{*this, wait};
  auto moved = Clock::now();
  bool slept = false;
  for (int idle = 0;; ++idle) {
    throwIfFailed();
    // A spinning wait polls for control texts every 32nd turn. A sleeping wait
    // polls every turn, because on a busy machine a sleep may last until all
    // other processes have had a time slice.
    const bool looksAround = idle % 32 == 31 || slept;
    bool moves = false, hasDied = false;
    std::string broken, lost;
    try {
      const std::lock_guard lock(mutex);
      if (failed)
        continue;
      moves = advance(requests);
      if (requests.empty())
        return;
      if (looksAround) {
        advanceOwned();
        listen();
        lost = whyLost(wait);
        hasDied = std::ranges::any_of(
            wait.missing(), [&](int peer) { return wire.hasDied(peer); });
      }
    } catch (const CommunicationError &error) {
      broken = what() + ": " + error.what();
    }
    if (failed)
      continue;
    if (broken.empty())
      broken = lost;
    if (!broken.empty()) {
      fail(broken); // uses the wire while the requests' buffers exist
      throw CommunicationError(broken);
    }
    if (moves) {
      idle = 0;
      moved = Clock::now();
    } else if (looksAround) {
      // Open MPI sends SIGTERM a second after a rank has died, and SIGKILL a
      // second later. A rank that has waited for `soon` when SIGTERM arrives
      // reports at once.
      const auto soon = std::min(options.patience, kPatienceWhenTerminated);
      const auto waited = Clock::now() - moved;
      const bool ends = isTerminated(), isSoon = ends && waited >= soon;
      // SIGTERM ends this wait, unless this rank outlives SIGTERM and no peer
      // that it waits for has died.
      const bool late =
          ends && (!options.outlivesTermination || (isSoon && hasDied));
      const auto patience = late ? soon : options.patience;
      if (isSoon && !late && !saidWhom) {
        saidWhom = true;
        std::fprintf(stderr,
                     "rank %d: received SIGTERM, is still saving, and waits "
                     "for %s: %s\n",
                     rank(), wordsOf(wait.missing()).c_str(), what().c_str());
      }
      if ((late || !ended) && waited >= patience)
        giveUp(wait, patience, late);
    }
    slept = wire.rest(idle);
  }
}

/// Returns an error message if the connection to a missing rank is lost. The
/// caller must hold the mutex and must have called listen(), because the lost
/// rank may have sent a better reason.
std::string ProcessLink::whyLost(const Wait &wait) {
  std::vector<int> gone;
  for (const int peer : wait.missing())
    if (!wire.whyLost(peer).empty())
      gone.push_back(peer);
  return gone.empty() ? ""
                      : wordsOf(gone) + " did not reach " + wait.what() + ": " +
                            wire.whyLost(gone.front());
}

void ProcessLink::giveUp(const Wait &wait, milliseconds waited, bool late) {
  std::string reason;
  {
    // Asks all ranks at once, because asking along the chain of waits takes
    // longer.
    std::unique_lock lock(mutex);
    std::ranges::fill(answers, std::nullopt);
    tellAll(kAsk, {});
    const auto until =
        Clock::now() + (late ? kAnswerTimeWhenTerminated : kAnswerTime);
    const auto some = [&] {
      return std::ranges::count_if(answers, [](const auto &answer) {
               return !answer.has_value();
             }) > 1;
    };
    while (!failed && some() && Clock::now() < until) {
      wire.progress();
      listen();
      lock.unlock();
      std::this_thread::sleep_for(milliseconds(1));
      lock.lock();
    }
    const Waiting mine = {wait.what(), wait.missing()};
    reason = explain(rank(), mine, waited, [&](int other) {
      if (other == rank())
        return Doing{Doing::waiting, mine};
      return answers[other].value_or(Doing());
    });
  }
  throwIfFailed();
  if (late)
    reason = "received SIGTERM: " + reason;
  fail(reason);
  throw CommunicationError(reason);
}

void ProcessLink::awaitOwned(const std::function<std::string()> &what) {
  std::vector<Owned> rest;
  {
    const std::lock_guard lock(mutex);
    rest.swap(owned);
  }
  Requests requests;
  for (const Owned &own : rest)
    requests.push_back(own.ticket);
  await(requests, what);
}

std::optional<Wire::Stray> ProcessLink::stray() {
  const std::lock_guard lock(mutex);
  return wire.stray();
}

std::string ProcessLink::part() {
  const auto others = [&] {
    std::vector<int> ranks;
    for (int other = 0; other < size(); ++other)
      if (other != rank() && !parted[other])
        ranks.push_back(other);
    return ranks;
  };
  {
    const std::lock_guard lock(mutex);
    tellAll(kParted, {});
  }
  const auto until = Clock::now() + options.patience;
  for (int idle = 0;; ++idle) {
    {
      const std::lock_guard lock(mutex);
      wire.progress();
      listen();
      const std::vector<int> missing = others();
      if (failed)
        return Echo(failedRank, why).what();
      if (missing.empty() && wire.isAllControlSent())
        return {};
      for (const int other : missing)
        if (!wire.whyLost(other).empty())
          return wordsOf(std::vector{other}) +
                 " did not reach the end of the run: " + wire.whyLost(other);
      if (Clock::now() >= until)
        return missing.empty() ? std::string()
                               : wordsOf(missing) +
                                     " did not reach the end of the run "
                                     "within " +
                                     wordsOf(options.patience);
    }
    wire.rest(idle);
  }
}

/// Records the first failure. The caller must hold the mutex.
void ProcessLink::remember(int byRank, const std::string &because) {
  if (failed)
    return;
  failedRank = byRank;
  why = because;
  failed = true;
}

void ProcessLink::fail(const std::string &because) noexcept {
  const std::lock_guard lock(mutex);
  if (failed)
    return;
  tellAll(kFailed, because);
  // Control texts are short and are sent at once, except to a stopped process.
  const auto until = Clock::now() + milliseconds(100);
  while (!wire.isAllControlSent() && Clock::now() < until)
    wire.progress();
  remember(rank(), because);
}

void ProcessLink::listenOnce() {
  {
    const std::lock_guard lock(mutex);
    if (!failed) {
      wire.progress();
      listen();
    }
  }
  throwIfFailed();
}

void ProcessLink::throwIfFailed() const {
  if (!failed)
    return;
  const std::lock_guard lock(mutex);
  throw Echo(failedRank, why);
}

} // namespace mtplan::runtime
