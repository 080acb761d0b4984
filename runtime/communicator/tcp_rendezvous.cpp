//===- tcp_rendezvous.cpp - Rendezvous of processes over sockets ----------===//

#include "runtime/communicator/tcp_rendezvous.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <random>
#include <sstream>
#include <thread>

#include <sys/socket.h>

#include "runtime/communicator/call.h"

namespace mtplan::runtime {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

namespace {

/// Holds the start of an answer of rank 0. A text of `bytes` bytes follows.
struct Answer {
  enum Verdict : std::uint32_t {
    welcome = 1, ///< `met` follows once all ranks have joined
    met = 2,     ///< the text lists the ranks' addresses, one per line
    refused = 3, ///< the text is the reason
    stranger = 4 ///< the text names the run that uses this port
  };
  std::array<char, 8> magic = Hello().magic;
  std::uint32_t version = kTcpVersion;
  std::uint32_t verdict = welcome;
  std::array<std::uint64_t, 2> key{};
  std::int64_t bytes = 0;
};
static_assert(sizeof(Answer) == 40);

/// Limits the text of an answer, in bytes; the text has one line per rank.
constexpr std::int64_t kMostText = 1 << 24;
constexpr std::chrono::seconds kAnswerTime{5};
/// Rank 0 may begin to wait this much later than other ranks.
constexpr std::chrono::seconds kGrace{5};
constexpr milliseconds kPause{20};

bool answer(const Socket &socket, Answer::Verdict verdict,
            const std::string &text, std::array<std::uint64_t, 2> key = {}) {
  Answer head;
  head.verdict = verdict;
  head.key = key;
  head.bytes = static_cast<std::int64_t>(text.size());
  const Until until = Clock::now() + kAnswerTime;
  return sendAll(socket, &head, sizeof(head), until) &&
         sendAll(socket, text.data(), text.size(), until);
}

bool readAnswer(const Socket &socket, Answer &head, std::string &text,
                Until until) {
  if (!receiveAll(socket, &head, sizeof(head), until) ||
      head.magic != Hello().magic || head.bytes < 0 || head.bytes > kMostText)
    return false;
  text.resize(static_cast<std::size_t>(head.bytes));
  return receiveAll(socket, text.data(), text.size(),
                    std::max(until, Clock::now() + kAnswerTime));
}

void throwIfTerminated(int rank) {
  if (isTerminated())
    throw CommunicationError("received SIGTERM before all ranks had reached "
                             "rank " +
                             std::to_string(rank));
}

/// Returns whether the other end has closed the connection. Ranks send nothing
/// before all have joined, so a readable connection has ended.
bool hasLeft(const Socket &socket) {
  char byte = 0;
  const ssize_t got = recv(socket.number(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got >= 0 || (errno != EAGAIN && errno != EINTR);
}

//===----------------------------------------------------------------------===//
// Rank 0
//===----------------------------------------------------------------------===//

class Host {
public:
  Host(const TcpStart &itsStart, milliseconds itsPatience)
      : start(itsStart), patience(itsPatience), key(keyOf(start.job)),
        reception(listen()), connections(start.ranks), listens(start.ranks) {}

  std::vector<Socket> connectAll() {
    const Until until = Clock::now() + patience;
    while (!missing().empty()) {
      for (Reception::Guest &guest : reception.receive())
        judge(std::move(guest));
      for (Socket &connection : connections)
        if (connection && hasLeft(connection))
          connection.close();
      throwIfTerminated(start.rank);
      if (Clock::now() >= until && !missing().empty())
        giveUp();
    }
    std::string table = "- 0\n"; // the others know rank 0's address
    for (int rank = 1; rank < start.ranks; ++rank)
      table +=
          listens[rank].host + ' ' + std::to_string(listens[rank].port) + '\n';
    std::random_device device;
    std::array<std::uint64_t, 2> links{};
    for (std::uint64_t &half : links)
      half = std::uint64_t{device()} << 32 | device();
    for (const Socket &connection : connections)
      if (connection)
        answer(connection, Answer::met, table, links);
    return std::move(connections);
  }

private:
  Socket listen() const {
    std::string why = "there is no port to listen at";
    for (const int port : start.ports) {
      Attempt attempt = listenAt(port, start.oneHost);
      if (attempt.socket)
        return std::move(attempt.socket);
      why = "rank 0 cannot listen at port " + std::to_string(port) + ": " +
            attempt.why;
    }
    throw CommunicationError(why + "; choose another with MASTER_PORT");
  }

  std::vector<int> missing() const {
    std::vector<int> ranks;
    for (int rank = 1; rank < start.ranks; ++rank)
      if (!connections[rank])
        ranks.push_back(rank);
    return ranks;
  }

  void judge(Reception::Guest guest) {
    const Hello &hello = guest.hello;
    const std::string who =
        "rank " + std::to_string(hello.rank) + " at " + hostOf(guest.socket);
    std::string why;
    if (hello.version != kTcpVersion)
      why = who + " has protocol version " + std::to_string(hello.version) +
            ", rank 0 has " + std::to_string(kTcpVersion);
    else if (hello.purpose != Hello::join || hello.key != key) {
      answer(guest.socket, Answer::stranger,
             "another run listens there, that of " + start.job);
      lastRefused = who + " is of another run";
      return;
    } else if (hello.ranks != start.ranks)
      why = who + " was started as one of " + std::to_string(hello.ranks) +
            " ranks, rank 0 as one of " + std::to_string(start.ranks);
    else if (hello.rank < 1 || hello.rank >= start.ranks)
      why =
          who + " is not one of ranks 1 to " + std::to_string(start.ranks - 1);
    else if (hello.port < 1 || hello.port > 65535)
      why = who + " listens at port " + std::to_string(hello.port) +
            ": not 1 to 65535";
    else if (connections[hello.rank] && !hasLeft(connections[hello.rank]))
      why = who + " is there already, from " + hostOf(connections[hello.rank]);
    if (!why.empty()) {
      lastRefused = why;
      answer(guest.socket, Answer::refused, why);
    } else if (answer(guest.socket, Answer::welcome, {})) {
      listens[hello.rank] = {hostOf(guest.socket), hello.port};
      connections[hello.rank] = std::move(guest.socket);
    }
  }

  [[noreturn]] void giveUp() {
    std::string why = wordsOf(missing()) + " did not reach rank 0 at port " +
                      std::to_string(reception.port()) + " within " +
                      wordsOf(patience);
    if (!lastRefused.empty())
      why += "; refused: " + lastRefused;
    if (const std::string words = reception.wordsOfStrangers(); !words.empty())
      why += "; " + words;
    for (const Socket &connection : connections)
      if (connection)
        answer(connection, Answer::refused, why);
    throw CommunicationError(why);
  }

  const TcpStart &start;
  milliseconds patience;
  std::array<std::uint64_t, 2> key;
  Reception reception;
  std::vector<Socket> connections; ///< by rank
  std::vector<Endpoint> listens;   ///< by rank
  std::string lastRefused;
};

//===----------------------------------------------------------------------===//
// Other ranks
//===----------------------------------------------------------------------===//

class Visitor {
public:
  Visitor(const TcpStart &itsStart, milliseconds itsPatience)
      : start(itsStart), patience(itsPatience), reception(listen()),
        connections(start.ranks) {}

  std::vector<Socket> connectAll() {
    join();
    Answer head;
    std::string table;
    const bool heard = readAnswer(connections[0], head, table,
                                  Clock::now() + patience + kGrace);
    if (heard && head.verdict == Answer::refused)
      throw CommunicationError(table);
    if (!heard || head.verdict != Answer::met) {
      throwIfTerminated(0);
      throw CommunicationError("rank 0 at " + wordsOf(reached) +
                               " did not say that all ranks are there");
    }
    links = head.key;
    connectToLower(table);
    acceptHigher();
    return std::move(connections);
  }

private:
  Socket listen() const {
    Attempt attempt = listenAt(0, start.oneHost);
    if (!attempt.socket)
      throw CommunicationError("rank " + std::to_string(start.rank) +
                               " cannot listen: " + attempt.why);
    return std::move(attempt.socket);
  }

  Hello hello(Hello::Purpose purpose, std::array<std::uint64_t, 2> key,
              int to) const {
    Hello said;
    said.purpose = purpose;
    said.key = key;
    said.rank = start.rank;
    said.ranks = start.ranks;
    said.port = reception.port();
    said.to = to;
    return said;
  }

  void join() {
    const Until until = Clock::now() + patience;
    std::string why;
    while (!connections[0]) {
      for (const int port : start.ports)
        if (!connections[0])
          why = ask({start.host, port}, until);
      throwIfTerminated(0);
      if (connections[0])
        break;
      if (Clock::now() >= until)
        throw CommunicationError("rank " + std::to_string(start.rank) +
                                 " did not reach rank 0 within " +
                                 wordsOf(patience) + ": " + why);
      std::this_thread::sleep_for(kPause);
    }
  }

  /// Tries to join at this address. Returns an error message if rank 0 of this
  /// run does not answer there.
  std::string ask(const Endpoint &at, Until until) {
    // Rank 0 may listen at another port of the list.
    if (start.ports.size() > 1)
      until = std::min(until, Clock::now() + kAnswerTime);
    const auto said = [&](const std::string &what) {
      return wordsOf(at) + ": " + what;
    };
    Attempt attempt = connectTo(at, until);
    if (!attempt.socket)
      return said(attempt.why);
    const Hello mine = hello(Hello::join, keyOf(start.job), 0);
    Answer head;
    std::string text;
    if (!sendAll(attempt.socket, &mine, sizeof(mine), until) ||
        !readAnswer(attempt.socket, head, text, until))
      return said("the process that listens there is not rank 0");
    if (head.verdict == Answer::stranger)
      return said(text);
    if (head.verdict != Answer::welcome)
      throw CommunicationError("refused by rank 0 at " + wordsOf(at) + ": " +
                               text);
    reached = {hostOf(attempt.socket), at.port};
    connections[0] = std::move(attempt.socket);
    return {};
  }

  void connectToLower(const std::string &table) {
    std::istringstream lines(table);
    Endpoint other;
    for (int rank = 0; rank < start.rank; ++rank) {
      if (!(lines >> other.host >> other.port))
        throw CommunicationError("rank 0 at " + wordsOf(reached) +
                                 " does not say where rank " +
                                 std::to_string(rank) + " listens");
      if (rank == 0)
        continue;
      // Rank 0 sees ranks of its own host under a loopback address.
      if (isLoopback(other.host))
        other.host = reached.host;
      const Until until = Clock::now() + patience;
      Attempt attempt = connectTo(other, until);
      const Hello mine = hello(Hello::link, links, rank);
      if (attempt.socket &&
          sendAll(attempt.socket, &mine, sizeof(mine), until)) {
        connections[rank] = std::move(attempt.socket);
        continue;
      }
      throwIfTerminated(rank);
      throw CommunicationError(
          "rank " + std::to_string(start.rank) + " cannot reach rank " +
          std::to_string(rank) + " at " + wordsOf(other) + ": " +
          (attempt.why.empty() ? "the connection broke" : attempt.why));
    }
  }

  void acceptHigher() {
    const Until until = Clock::now() + patience;
    for (;;) {
      std::vector<int> missing;
      for (int rank = start.rank + 1; rank < start.ranks; ++rank)
        if (!connections[rank])
          missing.push_back(rank);
      if (missing.empty())
        return;
      throwIfTerminated(start.rank);
      if (Clock::now() >= until)
        throw CommunicationError(
            wordsOf(missing) + " did not connect to rank " +
            std::to_string(start.rank) + " within " + wordsOf(patience));
      for (Reception::Guest &guest : reception.receive()) {
        const Hello &said = guest.hello;
        if (said.version == kTcpVersion && said.purpose == Hello::link &&
            said.key == links && said.to == start.rank &&
            std::ranges::count(missing, said.rank) == 1)
          connections[said.rank] = std::move(guest.socket);
      }
    }
  }

  const TcpStart &start;
  milliseconds patience;
  Reception reception;
  std::vector<Socket> connections; ///< by rank
  Endpoint reached;                ///< address of rank 0
  std::array<std::uint64_t, 2> links{};
};

} // namespace

std::array<std::uint64_t, 2> keyOf(const std::string &job) {
  return {hashOf(job), hashOf(job, 0x84222325cbf29ce4)};
}

std::vector<Socket> connectAll(const TcpStart &start, milliseconds patience) {
  if (start.rank < 0 || start.rank >= start.ranks)
    throw CommunicationError("no rank " + std::to_string(start.rank) +
                             " among " + std::to_string(start.ranks) +
                             " ranks, from 0");
  return start.rank == 0 ? Host(start, patience).connectAll()
                         : Visitor(start, patience).connectAll();
}

} // namespace mtplan::runtime
