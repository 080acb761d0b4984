//===- mpi_link.cpp - Messages between processes, and patience ------------===//

#include "runtime/communicator/mpi_link.h"

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <thread>

#include "runtime/communicator/call.h"
#include "runtime/communicator/gate.h"
#include "runtime/communicator/termination.h"

namespace mtplan::runtime {
namespace {

using std::chrono::milliseconds;

// What is told on the control channel. Short enough to go at once.
enum ControlTag { kFailed, kAsk, kAnswer };
constexpr std::size_t kControlBytes = 2000;

/// How long others have to say what they wait for.
constexpr milliseconds kAnswerTime{300};
/// What is left to a process between SIGTERM and SIGKILL is a second.
constexpr milliseconds kPatienceWhenTerminated{400};
constexpr milliseconds kAnswerTimeWhenTerminated{100};
/// A rank that nobody keeps waiting goes on for so long, in which others say
/// whom they wait for.
constexpr milliseconds kTimeWhenTerminated{600};

constexpr int kIdleUntilSleep = 2000;

/// Lets others run, the more the longer nothing has moved.
void relax(int idle) {
  if (idle < 100)
    pauseProcessor();
  else if (idle < kIdleUntilSleep)
    std::this_thread::yield();
  else
    std::this_thread::sleep_for(std::chrono::microseconds(50));
}

// An answer: "e" if ended, or "w", what, and the missing ranks, by line.
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

struct MpiLink::Wait {
  const Requests &requests;
  const std::function<std::string()> &what;

  std::vector<int> missing() const {
    std::vector<int> peers;
    for (const Pending &pending : requests)
      peers.push_back(pending.peer);
    std::sort(peers.begin(), peers.end());
    peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
    return peers;
  }
};

MpiLink::MpiLink(const WorldOptions &itsOptions) : options(itsOptions) {
  MPI_Comm_dup(MPI_COMM_WORLD, &data);
  MPI_Comm_dup(MPI_COMM_WORLD, &control);
  for (MPI_Comm comm : {data, control})
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(data, &its);
  MPI_Comm_size(data, &ranks);
  int *highest = nullptr, found = 0;
  MPI_Comm_get_attr(data, MPI_TAG_UB, &highest, &found);
  if (found)
    highestTag = *highest;
  neighbours.emplace(control);
  answers.resize(ranks);
  int threads = MPI_THREAD_SINGLE;
  MPI_Query_thread(&threads);
  if (threads >= MPI_THREAD_SERIALIZED)
    carrier = std::thread([this] { carry(); });
}

MpiLink::~MpiLink() {
  {
    const std::lock_guard lock(mutex);
    leaving = true;
  }
  ownedCame.notify_one();
  if (carrier.joinable())
    carrier.join();
}

void MpiLink::carry() {
  std::unique_lock lock(mutex);
  for (;;) {
    ownedCame.wait(lock,
                   [&] { return leaving || (!failed && !owned.empty()); });
    if (leaving)
      return;
    try {
      advanceOwned();
    } catch (const CommunicationError &error) {
      remember(its, error.what()); // for the next call of this rank
    }
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    lock.lock();
  }
}

/// The caller holds the mutex.
void MpiLink::check(int code, int peer) const {
  if (code == MPI_SUCCESS)
    return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw CommunicationError("rank " + std::to_string(peer) +
                           " cannot be reached: " + text);
}

namespace {

/// A datatype for as long as a request is started with it.
class RowType {
public:
  explicit RowType(const Rows &rows) {
    if (rows.rows == 1 || rows.stride == rows.bytes) {
      count = static_cast<int>(rows.rows * rows.bytes);
      return;
    }
    MPI_Type_create_hvector(static_cast<int>(rows.rows),
                            static_cast<int>(rows.bytes), rows.stride, MPI_BYTE,
                            &type);
    MPI_Type_commit(&type);
  }
  ~RowType() {
    if (type != MPI_BYTE)
      MPI_Type_free(&type);
  }
  RowType(const RowType &) = delete;
  RowType &operator=(const RowType &) = delete;

  MPI_Datatype type = MPI_BYTE;
  int count = 1;
};

int tagOf(MpiLink::Traffic traffic, int channel) {
  return 2 * channel + (traffic == MpiLink::Traffic::transfer ? 1 : 0);
}

} // namespace

void MpiLink::send(Requests &requests, const Rows &from, int to,
                   Traffic traffic, int channel) {
  throwIfFailed();
  const std::lock_guard lock(mutex);
  const RowType type(from);
  Pending pending = {MPI_REQUEST_NULL, to};
  check(MPI_Isend(from.base, type.count, type.type, to, tagOf(traffic, channel),
                  data, &pending.request),
        to);
  requests.push_back(pending);
}

void MpiLink::receive(Requests &requests, const Rows &to, int from,
                      Traffic traffic, int channel) {
  throwIfFailed();
  const std::lock_guard lock(mutex);
  const RowType type(to);
  Pending pending = {MPI_REQUEST_NULL, from};
  check(MPI_Irecv(to.base, type.count, type.type, from, tagOf(traffic, channel),
                  data, &pending.request),
        from);
  requests.push_back(pending);
}

void MpiLink::sendOwned(std::vector<std::byte> message, std::int64_t bytes,
                        int to, Traffic traffic, int channel) {
  throwIfFailed();
  const std::lock_guard lock(mutex);
  Owned own = {MPI_REQUEST_NULL, to, std::move(message)};
  check(MPI_Isend(own.message.data(), static_cast<int>(bytes), MPI_BYTE, to,
                  tagOf(traffic, channel), data, &own.request),
        to);
  owned.push_back(std::move(own));
  advanceOwned();
  if (!owned.empty())
    ownedCame.notify_one();
}

std::vector<std::byte> MpiLink::memory(std::int64_t bytes) {
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

/// The caller holds the mutex. Returns whether something has moved.
bool MpiLink::advance(Requests &requests) {
  const std::size_t before = requests.size();
  std::erase_if(requests, [&](Pending &pending) {
    int done = 0;
    check(MPI_Test(&pending.request, &done, MPI_STATUS_IGNORE), pending.peer);
    return done != 0;
  });
  return requests.size() < before;
}

/// The caller holds the mutex.
void MpiLink::advanceOwned() {
  std::erase_if(owned, [&](Owned &own) {
    int done = 0;
    check(MPI_Test(&own.request, &done, MPI_STATUS_IGNORE), own.peer);
    if (done)
      spare.push_back(std::move(own.message));
    return done != 0;
  });
}

/// The caller holds the mutex.
void MpiLink::tell(int to, int tag, const std::string &text) {
  told.emplace_back(MPI_REQUEST_NULL, text.substr(0, kControlBytes));
  auto &[request, kept] = told.back();
  MPI_Isend(kept.data(), static_cast<int>(kept.size()), MPI_CHAR, to, tag,
            control, &request);
}

/// The caller holds the mutex. Hears and answers what others say.
void MpiLink::listen() {
  for (;;) {
    int there = 0;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, control, &there, &status) !=
            MPI_SUCCESS ||
        !there)
      break;
    char text[kControlBytes];
    int length = 0;
    MPI_Get_count(&status, MPI_CHAR, &length);
    MPI_Recv(text, length, MPI_CHAR, status.MPI_SOURCE, status.MPI_TAG, control,
             MPI_STATUS_IGNORE);
    hear(status.MPI_SOURCE, status.MPI_TAG, std::string(text, length));
  }
}

void MpiLink::hear(int from, int tag, const std::string &text) {
  switch (tag) {
  case kFailed:
    remember(from, text);
    break;
  case kAsk:
    if (const std::string doing = ownDoing(); !doing.empty())
      tell(from, kAnswer, doing);
    break;
  case kAnswer:
    answers[from] = doingOf(text);
    break;
  }
}

/// Empty if this rank does not wait, which a rank that works cannot say.
std::string MpiLink::ownDoing() const {
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

/// Also of a rank that waits for nobody long enough to lose its patience.
void MpiLink::obeyTermination() {
  if (!isTerminated() || options.outlivesTermination)
    return;
  const auto now = Clock::now().time_since_epoch();
  Clock::rep first = 0;
  if (terminatedAt.compare_exchange_strong(first, now.count()) ||
      now - Clock::duration(first) < kTimeWhenTerminated)
    return;
  const std::string reason = "told to end by SIGTERM";
  fail(reason);
  throw CommunicationError(reason);
}

void MpiLink::await(Requests &requests,
                    const std::function<std::string()> &what) {
  if (!ended)
    obeyTermination();
  const Wait wait{requests, what};
  struct Shown {
    MpiLink &link;
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
  for (int idle = 0;; ++idle) {
    throwIfFailed();
    // Not at every turn of a wait that spins; of one that sleeps, at each: on a
    // busy machine every sleep may last a time slice of all others.
    const bool looksAround = idle % 32 == 31 || idle >= kIdleUntilSleep;
    bool moves = false;
    std::string broken;
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
      }
    } catch (const CommunicationError &error) {
      broken = what() + ": " + error.what();
    }
    if (!broken.empty()) {
      fail(broken); // while the buffers of all requests are there
      throw CommunicationError(broken);
    }
    if (moves) {
      idle = 0;
      moved = Clock::now();
    } else if (looksAround) {
      // Open MPI sends SIGTERM a second after a rank has died, SIGKILL a second
      // later: who has waited that long already says so at once.
      const auto soon = std::min(options.patience, kPatienceWhenTerminated);
      const auto waited = Clock::now() - moved;
      const bool ends = isTerminated(), isSoon = ends && waited >= soon;
      // Who has died comes no more: there is nothing to go on for.
      const bool late =
          ends &&
          (!options.outlivesTermination ||
           (isSoon && std::ranges::any_of(wait.missing(), [&](int rank) {
              return neighbours->hasDied(rank);
            })));
      const auto patience = late ? soon : options.patience;
      if (isSoon && !late && !saidWhom) {
        saidWhom = true;
        std::fprintf(stderr,
                     "rank %d: told to end by SIGTERM, goes on to save, waits "
                     "for %s: %s\n",
                     its, wordsOf(wait.missing()).c_str(), what().c_str());
      }
      if ((late || !ended) && waited >= patience)
        giveUp(wait, patience, late);
    }
    relax(idle);
  }
}

void MpiLink::giveUp(const Wait &wait, milliseconds waited, bool late) {
  std::string reason;
  {
    // Everybody at once: whom to ask next is only known from the answers.
    std::unique_lock lock(mutex);
    std::ranges::fill(answers, std::nullopt);
    for (int rank = 0; rank < ranks; ++rank)
      if (rank != its)
        tell(rank, kAsk, {});
    const auto until =
        Clock::now() + (late ? kAnswerTimeWhenTerminated : kAnswerTime);
    const auto some = [&] {
      return std::ranges::count_if(answers, [](const auto &answer) {
               return !answer.has_value();
             }) > 1;
    };
    while (!failed && some() && Clock::now() < until) {
      listen();
      lock.unlock();
      std::this_thread::sleep_for(milliseconds(1));
      lock.lock();
    }
    const Waiting mine = {wait.what(), wait.missing()};
    reason = explain(its, mine, waited, [&](int rank) {
      if (rank == its)
        return Doing{Doing::waiting, mine};
      return answers[rank].value_or(Doing());
    });
  }
  throwIfFailed();
  if (late)
    reason = "told to end by SIGTERM: " + reason;
  fail(reason);
  throw CommunicationError(reason);
}

void MpiLink::awaitOwned(const std::function<std::string()> &what) {
  std::vector<Owned> rest;
  {
    const std::lock_guard lock(mutex);
    rest.swap(owned);
  }
  Requests requests;
  for (const Owned &own : rest)
    requests.push_back({own.request, own.peer});
  await(requests, what);
}

std::optional<MpiLink::Stray> MpiLink::stray() {
  const std::lock_guard lock(mutex);
  int there = 0, length = 0;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, data, &there, &status);
  if (!there)
    return std::nullopt;
  MPI_Get_count(&status, MPI_BYTE, &length);
  Stray found = {std::vector<char>(length), status.MPI_SOURCE,
                 status.MPI_TAG / 2};
  MPI_Recv(found.message.data(), length, MPI_BYTE, status.MPI_SOURCE,
           status.MPI_TAG, data, MPI_STATUS_IGNORE);
  return found;
}

/// The caller holds the mutex.
void MpiLink::remember(int rank, const std::string &because) {
  if (failed)
    return;
  failedRank = rank;
  why = because;
  failed = true;
}

void MpiLink::fail(const std::string &because) noexcept {
  const std::lock_guard lock(mutex);
  if (failed)
    return;
  for (int rank = 0; rank < ranks; ++rank)
    if (rank != its)
      tell(rank, kFailed, because);
  // Short messages go at once; to one that is stopped they may not.
  const auto until = Clock::now() + milliseconds(100);
  bool all = false;
  while (!all && Clock::now() < until) {
    all = true;
    for (auto &[request, text] : told) {
      int done = 0;
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      all = all && done;
    }
  }
  remember(its, because);
}

void MpiLink::throwIfFailed() const {
  if (!failed)
    return;
  const std::lock_guard lock(mutex);
  throw Echo(failedRank, why);
}

} // namespace mtplan::runtime
