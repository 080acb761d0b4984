//===- tcp_test.cpp - Ranks that communicate over sockets -----------------===//

#include <cstring>
#include <random>
#include <thread>

#include <sys/socket.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/communicator/process_world.h"
#include "runtime/communicator/tcp_wire.h"
#include "tests/runtime/communicator/cases.h"

namespace mtplan::runtime {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::AnyOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

WorldOptions patient() {
  WorldOptions options;
  options.patience = options.gathering = std::chrono::minutes(10);
  return options;
}

WorldOptions gathering(milliseconds time) {
  WorldOptions options;
  options.patience = options.gathering = time;
  return options;
}

Until soon() { return std::chrono::steady_clock::now() + milliseconds(10000); }

void sumOfOnes(World &world) {
  std::vector<float> data(100, 1.0F);
  world.allRanks("all")->allReduce("s", data.data(), data.data(),
                                   {ElementType::f32, 1, 100}, Reduction::sum);
  if (data != std::vector<float>(100, static_cast<float>(world.size())))
    throw std::runtime_error("wrong sum");
}

TEST(CommunicatorTcp, HasTheBitsOfThreads) {
  for (const int ranks : {1, 3}) {
    std::vector<std::uint64_t> expected(ranks), digests(ranks);
    runOnThreads(ranks, {}, [&](World &world) {
      expected[world.rank()] = runScenario(world);
    });
    EXPECT_THAT(runOverSockets(tcpStart(ranks), patient(),
                               [&](World &world) {
                                 digests[world.rank()] = runScenario(world);
                               }),
                Each(IsEmpty()));
    EXPECT_EQ(digests, expected);
  }
}

TEST(CommunicatorTcp, ARankMayUseGroupsFromSeveralThreads) {
  EXPECT_THAT(runOverSockets(tcpStart(3), patient(),
                             [](World &world) {
                               const auto one = world.group("one", {0, 1, 2});
                               const auto two = world.group("two", {2, 1, 0});
                               const auto use = [](Communicator &group) {
                                 for (int i = 0; i < 300; ++i) {
                                   std::vector<float> data(i % 2 ? 2000 : 7, 1);
                                   group.allReduce(
                                       "s", data.data(), data.data(),
                                       {ElementType::f32, 1,
                                        static_cast<std::int64_t>(data.size())},
                                       Reduction::sum);
                                   if (data.front() != 3 || data.back() != 3)
                                     throw std::runtime_error("wrong sum");
                                 }
                               };
                               std::thread other([&] { use(*two); });
                               use(*one);
                               other.join();
                             }),
              Each(IsEmpty()));
}

// Each rank sends many long messages to every rank before it receives any.
TEST(CommunicatorTcp, EarlyMessagesAreKept) {
  constexpr int kMessages = 20;
  EXPECT_THAT(
      runOverSockets(tcpStart(3), patient(),
                     [](World &world) {
                       std::vector<int> data(300000);
                       for (int i = 0; i < kMessages; ++i)
                         for (int to = 0; to < 3; ++to) {
                           std::ranges::fill(data, 100 * world.rank() + i);
                           world.send("m", data.data(), 4 * data.size(), to, i);
                         }
                       for (int i = kMessages; i-- > 0;)
                         for (int from = 0; from < 3; ++from) {
                           world.receive("m", data.data(), 4 * data.size(),
                                         from, i);
                           if (std::ranges::count(data, 100 * from + i) !=
                               static_cast<std::ptrdiff_t>(data.size()))
                             throw std::runtime_error("wrong message");
                         }
                     }),
      Each(IsEmpty()));
}

//===----------------------------------------------------------------------===//
// Rendezvous
//===----------------------------------------------------------------------===//

TEST(CommunicatorTcp, RanksMayStartInAnyOrder) {
  for (const int late : {0, 1, 2}) {
    const TcpStart start = tcpStart(3);
    std::vector<std::string> errors(3, "did not run");
    std::vector<std::thread> threads;
    threads.reserve(3);
    for (int rank = 0; rank < 3; ++rank)
      threads.emplace_back([&, rank] {
        if (rank == late)
          std::this_thread::sleep_for(milliseconds(150));
        TcpStart mine = start;
        mine.rank = rank;
        errors[rank] = runTcpRank(mine, patient(), sumOfOnes);
      });
    for (std::thread &thread : threads)
      thread.join();
    EXPECT_THAT(errors, Each(IsEmpty()));
  }
}

TEST(CommunicatorTcp, MissingRanksAreNamedToTheOthers) {
  const TcpStart start = tcpStart(4);
  std::vector<std::string> errors(4);
  std::vector<std::thread> threads;
  for (const int rank : {0, 2})
    threads.emplace_back([&, rank] {
      TcpStart mine = start;
      mine.rank = rank;
      errors[rank] = runTcpRank(
          mine, rank == 0 ? gathering(milliseconds(1500)) : patient(),
          sumOfOnes);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const int rank : {0, 2})
    EXPECT_THAT(errors[rank], AllOf(HasSubstr("ranks 1 and 3 did not reach"),
                                    HasSubstr("within 1500 ms")));
}

TEST(CommunicatorTcp, UnreachableRank0IsReportedWithItsAddress) {
  TcpStart start = tcpStart(2);
  start.rank = 1;
  start.ports.resize(1);
  EXPECT_THAT(runTcpRank(start, gathering(milliseconds(200)), sumOfOnes),
              AllOf(HasSubstr("rank 1 did not reach rank 0 within 200 ms"),
                    HasSubstr("127.0.0.1:" + std::to_string(start.ports[0]) +
                              ": Connection refused")));
  start.host = "no-such-host.invalid";
  EXPECT_THAT(runTcpRank(start, gathering(milliseconds(200)), sumOfOnes),
              HasSubstr("no-such-host.invalid:"));
}

/// Runs two ranks. Before rank 1 starts, `disturb` uses the port of rank 0.
/// Returns the error of each rank.
std::vector<std::string>
disturbed(const std::function<void(const TcpStart &, int port)> &disturb) {
  TcpStart start = tcpStart(2);
  {
    // Rank 0 may use only one port, the first that is free.
    Attempt free;
    for (const int port : start.ports)
      if ((free = listenAt(port, true)).socket) {
        start.ports = {port};
        break;
      }
  }
  std::vector<std::string> errors(2);
  std::thread leads(
      [&] { errors[0] = runTcpRank(start, patient(), sumOfOnes); });
  disturb(start, start.ports[0]);
  TcpStart mine = start;
  mine.rank = 1;
  errors[1] = runTcpRank(mine, patient(), sumOfOnes);
  leads.join();
  return errors;
}

Socket connected(int port) {
  for (;;)
    if (Attempt attempt = connectTo({"127.0.0.1", port}, soon());
        attempt.socket)
      return std::move(attempt.socket);
}

TEST(CommunicatorTcp, ForeignConnectionsAreRejected) {
  const auto saying = [](const TcpStart &start) {
    return runTcpRank(start, gathering(milliseconds(300)), sumOfOnes);
  };
  EXPECT_THAT(
      disturbed([&](const TcpStart &start, int port) {
        connected(port);
        TcpStart other = start;
        other.rank = 1;
        other.job = "another job";
        EXPECT_THAT(saying(other), HasSubstr("another run listens there"));
        other.job = start.job;
        other.ranks = 8;
        EXPECT_THAT(saying(other),
                    HasSubstr("was started as one of 8 ranks, rank 0 as one "
                              "of 2"));
        other.rank = 7;
        EXPECT_THAT(saying(other), HasSubstr("one of 8 ranks"));
      }),
      Each(IsEmpty()));
}

TEST(CommunicatorTcp, SecondConnectionOfARankIsRejected) {
  const TcpStart start = tcpStart(3);
  std::vector<std::string> errors(4);
  std::vector<std::thread> threads;
  for (const int thread : {0, 1, 2}) // rank 1 twice; rank 2 starts later
    threads.emplace_back([&, thread] {
      TcpStart mine = start;
      mine.rank = std::min(thread, 1);
      errors[thread] = runTcpRank(mine, patient(), sumOfOnes);
    });
  while (errors[1].empty() && errors[2].empty())
    std::this_thread::sleep_for(milliseconds(5));
  TcpStart last = start;
  last.rank = 2;
  errors[3] = runTcpRank(last, patient(), sumOfOnes);
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(errors[0] + errors[3], "");
  EXPECT_THAT(errors[1] + errors[2], HasSubstr("rank 1 at 127.0.0.1 is there "
                                               "already"));
}

TEST(CommunicatorTcp, GarbageOnThePortIsIgnored) {
  std::mt19937_64 draws(5);
  EXPECT_THAT(
      disturbed([&](const TcpStart &start, int port) {
        std::vector<Socket> open; // they stay open until the rendezvous ends
        for (int i = 0; i < 200; ++i) {
          Hello hello;
          hello.key = keyOf(start.job);
          hello.rank = hello.to = 1;
          hello.ranks = 2;
          hello.port = 1;
          std::vector<char> message(sizeof(hello));
          std::memcpy(message.data(), &hello, sizeof(hello));
          // Some bytes of the header change, or the header is truncated.
          if (i % 3 != 0)
            for (int n = 0; n < 1 + i % 8; ++n)
              message[5 * n + draws() % 5] ^=
                  static_cast<char>(1 + draws() % 255);
          else
            message.resize(draws() % message.size());
          if (i % 7 == 0)
            message.assign(1 + draws() % 100000, static_cast<char>(draws()));
          Socket socket = connected(port);
          sendAll(socket, message.data(), message.size(), soon());
          if (i % 2 == 0)
            open.push_back(std::move(socket));
        }
        const std::string web = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        sendAll(connected(port), web.data(), web.size(), soon());
      }),
      Each(IsEmpty()));
}

TEST(CommunicatorTcp, GarbageFromRank0FailsTheRendezvous) {
  std::mt19937_64 draws(6);
  for (int i = 0; i < 30; ++i) {
    const Attempt listener = listenAt(0, true);
    std::atomic<bool> over{false};
    std::thread answers([&] {
      while (!over) {
        const Socket socket = acceptFrom(listener.socket);
        std::vector<char> message(1 + draws() % 200);
        for (char &byte : message)
          byte = static_cast<char>(draws());
        if (i % 2 == 0) { // starts like a valid answer
          const auto magic = Hello().magic;
          const std::array<std::uint32_t, 2> head = {kTcpVersion,
                                                     1 + i / 2 % 4U};
          message.resize(40 + message.size());
          std::memcpy(message.data(), magic.data(), magic.size());
          std::memcpy(message.data() + 8, head.data(), 8);
          const std::int64_t bytes =
              i % 4 == 0 ? 0 : static_cast<std::int64_t>(message.size()) - 40;
          std::memcpy(message.data() + 32, &bytes, 8);
        }
        if (socket)
          sendAll(socket, message.data(), message.size(), soon());
        std::this_thread::sleep_for(milliseconds(1));
      }
    });
    TcpStart start = tcpStart(3);
    start.rank = 1 + i % 2;
    start.ports = {portOf(listener.socket)};
    EXPECT_NE(runTcpRank(start, gathering(milliseconds(30)), sumOfOnes), "");
    over = true;
    answers.join();
  }
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

/// Holds the wire of rank 0 in a world of two ranks. The test acts as rank 1,
/// with the other end of the socket.
struct Pair {
  Pair() {
    int ends[2] = {-1, -1};
    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends);
    other = Socket(ends[1]);
    std::vector<Socket> connections(2);
    connections[1] = Socket(ends[0]);
    wire.emplace(0, std::move(connections));
  }
  void say(const void *data, std::size_t bytes) {
    sendAll(other, data, bytes, soon());
    wire->progress();
  }
  void say(FrameHeader header, const std::string &body) {
    say(&header, sizeof(header));
    say(body.data(), body.size());
  }

  Socket other;
  std::optional<TcpWire> wire;
};

TEST(CommunicatorTcp, ClosedConnectionIsDetectedAtOnce) {
  Pair pair;
  WorldOptions options = patient();
  ProcessLink link(*pair.wire, options);
  std::thread leaves([&] {
    std::this_thread::sleep_for(milliseconds(20));
    pair.other.close();
  });
  EXPECT_EQ(runOver(link, sumOfOnes),
            "rank 1 did not reach all-reduce \"s\" of 1 x 100 f32, sum, in "
            "group \"all\" (ranks 0 1): its process has closed the connection");
  leaves.join();
}

TEST(CommunicatorTcp, InvalidMessagesDropTheirSender) {
  const std::vector<std::pair<FrameHeader, std::string>> faults = {
      {{0, 4, 1}, "x"},
      {{FrameHeader::kMark, 4, -1}, ""},
      {{FrameHeader::kMark, 4, std::int64_t{1} << 40}, ""},
      {{FrameHeader::kMark, -1, 100000}, ""},
      {{FrameHeader::kMark, 6, 9}, "123456789"}}; // 8 bytes are expected
  for (const auto &[header, body] : faults) {
    Pair pair;
    char data[8] = {};
    Wire::Ticket asked = pair.wire->receive({data, 1, 8, 0}, 1, 6);
    pair.say({FrameHeader::kMark, 4, 3}, "abc");
    EXPECT_EQ(pair.wire->whyLost(1), "");
    pair.say(header, body);
    EXPECT_THAT(pair.wire->whyLost(1),
                AnyOf("it sent an invalid message",
                      "it sent 9 bytes where 8 were expected"));
    EXPECT_FALSE(pair.wire->isThrough(asked));
    // Earlier messages remain valid.
    char early[3] = {};
    Wire::Ticket ticket = pair.wire->receive({early, 1, 3, 0}, 1, 4);
    EXPECT_TRUE(pair.wire->isThrough(ticket));
    EXPECT_EQ(std::string(early, 3), "abc");
  }
}

TEST(CommunicatorTcp, RandomBytesAreMessagesOrDropTheirSender) {
  std::mt19937_64 draws(7);
  for (int run = 0; run < 300; ++run) {
    Pair pair;
    std::vector<std::vector<char>> memory;
    std::vector<Wire::Ticket> tickets;
    for (int i = 0; i < 40 && pair.wire->whyLost(1).empty(); ++i) {
      if (draws() % 2 == 0) {
        memory.emplace_back(draws() % 4000);
        const auto bytes = static_cast<std::int64_t>(memory.back().size());
        tickets.push_back(
            pair.wire->receive({memory.back().data(), 1, bytes, 0}, 1,
                               static_cast<int>(draws() % 4)));
      }
      FrameHeader header = {FrameHeader::kMark,
                            static_cast<std::int32_t>(draws() % 8) - 3,
                            static_cast<std::int64_t>(draws() % 5000)};
      if (draws() % 30 == 0)
        reinterpret_cast<unsigned char *>(&header)[draws() % sizeof(header)] ^=
            1U << draws() % 8;
      const auto body = static_cast<std::size_t>(
          std::clamp<std::int64_t>(header.bytes, 0, 5000));
      pair.say(header, std::string(body, static_cast<char>(i)));
      while (pair.wire->nextControl()) {
      }
    }
    pair.other.close();
    pair.wire->progress();
    EXPECT_NE(pair.wire->whyLost(1), "");
    for (Wire::Ticket &ticket : tickets)
      pair.wire->isThrough(ticket);
  }
}

// Rows arrive intact, wherever the socket splits the stream.
TEST(CommunicatorTcp, RowsArriveAsTheyWereSent) {
  Pair pair;
  std::vector<char> from(200 * 1000), to(200 * 700, '-');
  std::mt19937_64 draws(8);
  for (char &byte : from)
    byte = static_cast<char>(draws());
  std::vector<Socket> back(2);
  back[0] = std::move(pair.other);
  TcpWire other(1, std::move(back));
  Wire::Ticket sent = other.send({from.data(), 200, 600, 1000}, 0, 3);
  Wire::Ticket got = pair.wire->receive({to.data(), 200, 600, 700}, 1, 3);
  bool isSent = false, isHere = false;
  while (!isSent || !isHere) {
    other.progress();
    pair.wire->progress();
    isSent = isSent || other.isThrough(sent);
    isHere = isHere || pair.wire->isThrough(got);
  }
  for (int row = 0; row < 200; ++row) {
    EXPECT_EQ(std::memcmp(&from[1000 * row], &to[700 * row], 600), 0) << row;
    EXPECT_EQ(std::string(&to[700 * row + 600], 100), std::string(100, '-'));
  }
}

} // namespace
} // namespace mtplan::runtime
