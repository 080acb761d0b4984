//===- meeting_test.cpp - Rendezvous of emitted programs ------------------===//

#include <array>
#include <cstdlib>
#include <initializer_list>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/cuda/standalone/meeting.h"

namespace mtplan::runtime::cuda {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

using Number = std::array<unsigned char, 128>; ///< a ncclUniqueId

Number theNumber() {
  Number number;
  std::iota(number.begin(), number.end(), static_cast<unsigned char>(1));
  return number;
}

/// Returns a free port.
std::string freePort() {
  const Socket one(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(one.fd, reinterpret_cast<sockaddr *>(&address), size), 0);
  getsockname(one.fd, reinterpret_cast<sockaddr *>(&address), &size);
  return std::to_string(ntohs(address.sin_port));
}

/// Returns whether this machine has IPv6 addresses.
bool hasIpv6() {
  const Socket one(socket(AF_INET6, SOCK_STREAM, 0));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  return bind(one.fd, reinterpret_cast<sockaddr *>(&address),
              sizeof(address)) == 0;
}

Process process(int rank, int ranks) { return {rank, ranks, 0, false}; }

/// Returns the ncclUniqueId of each rank after the rendezvous, in which rank 0
/// arrives last.
std::vector<Number> met(int ranks, const MeetingPlace &place) {
  std::vector<Number> numbers(static_cast<std::size_t>(ranks));
  numbers[0] = theNumber();
  std::vector<std::thread> threads;
  for (int rank = ranks - 1; rank >= 0; --rank)
    threads.emplace_back([&, rank] {
      Number &number = numbers[static_cast<std::size_t>(rank)];
      handOut(number.data(), number.size(), process(rank, ranks), place);
    });
  for (std::thread &thread : threads)
    thread.join();
  return numbers;
}

/// Sets environment variables; the destructor removes them.
class Variables {
public:
  explicit Variables(
      std::initializer_list<std::pair<const char *, const char *>> all) {
    for (const auto &[name, value] : all) {
      setenv(name, value, /*overwrite=*/1);
      names.push_back(name);
    }
  }
  ~Variables() {
    for (const char *name : names)
      unsetenv(name);
  }
  Variables(const Variables &) = delete;
  Variables &operator=(const Variables &) = delete;

private:
  std::vector<const char *> names;
};

TEST(Process, IsATaskOfSrun) {
  const Variables task({{"SLURM_PROCID", "3"},
                        {"SLURM_NTASKS", "8"},
                        {"SLURM_STEP_NUM_TASKS", "4"},
                        {"SLURM_LOCALID", "1"}});
  const Process own = thisProcess();
  EXPECT_FALSE(own.isAlone);
  EXPECT_EQ(own.rank, 3);
  EXPECT_EQ(own.ranks, 4);
  EXPECT_EQ(own.device, 1);
}

TEST(Process, IsAloneInABatchScript) {
  const Variables script(
      {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "0"}});
  EXPECT_TRUE(thisProcess().isAlone);
  const Variables step({{"SLURM_STEP_NUM_TASKS", "1"}});
  EXPECT_TRUE(thisProcess().isAlone);
}

TEST(Process, HasADeviceOfItsOwn) {
  EXPECT_EQ(deviceOf({5, 8, 1, false}, 4), 1);
  EXPECT_THAT(
      [] {
        deviceOf({5, 8, 4, false}, 4);
      },
      ThrowsMessage<std::runtime_error>(
          "rank 5 has local rank 4, but sees 4 GPUs: start at most 4 ranks "
          "per host, or give each rank its own GPU with "
          "CUDA_VISIBLE_DEVICES"));
}

TEST(Process, UsesTheOnlyDeviceThatItIsShown) {
  const Variables shown({{"CUDA_VISIBLE_DEVICES", "3"}});
  EXPECT_EQ(deviceOf({5, 8, 3, false}, 1), 0);
}

// The hosts are an IPv4 and an IPv6 address, and a name that may resolve to an
// address of either kind.
TEST(Meeting, SendsRankZerosIdToAllRanks) {
  std::vector<std::string> hosts = {"127.0.0.1", "localhost"};
  if (hasIpv6())
    hosts.emplace_back("::1");
  for (const std::string &host : hosts)
    for (const int ranks : {1, 2, 5})
      EXPECT_THAT(met(ranks, {host, freePort()}), testing::Each(theNumber()))
          << host << ", " << ranks << " ranks";
}

TEST(Meeting, IgnoresConnectionsOfOtherPrograms) {
  const MeetingPlace place{"127.0.0.1", freePort()};
  std::thread stranger([&] {
    const Addresses all(place);
    for (bool in = false; !in;) {
      const Socket line(socket(AF_INET, SOCK_STREAM, 0));
      in = connect(line.fd, all.first->ai_addr, all.first->ai_addrlen) == 0;
      if (in) {
        EXPECT_TRUE(line.sends("GET / HTTP/1.1\r\n\r\n", 18));
      }
    }
    // The real rank 1 arrives after the stranger has been connected.
    Number number{};
    handOut(number.data(), number.size(), process(1, 2), place);
    EXPECT_EQ(number, theNumber());
  });
  Number number = theNumber();
  handOut(number.data(), number.size(), process(0, 2), place);
  stranger.join();
}

// The timeout of 3 s lets one rank arrive even on a busy machine.
TEST(Meeting, ErrorNamesHowManyRanksCame) {
  const MeetingPlace place{"127.0.0.1", freePort()};
  std::thread other([&] {
    Number number{};
    handOut(number.data(), number.size(), process(2, 3), place);
  });
  Number number = theNumber();
  EXPECT_THAT(
      [&] {
        handOut(number.data(), number.size(), process(0, 3), place,
                std::chrono::seconds(3));
      },
      ThrowsMessage<std::runtime_error>(
          "1 of 2 other ranks connected to port " + place.port +
          " within 3 s"));
  other.join();
}

TEST(Meeting, ErrorNamesTheUnreachableAddress) {
  const MeetingPlace place{"127.0.0.1", freePort()};
  Number number{};
  EXPECT_THAT(
      [&] {
        handOut(number.data(), number.size(), process(1, 2), place,
                std::chrono::seconds(1));
      },
      ThrowsMessage<std::runtime_error>(
          "rank 0 did not answer at 127.0.0.1:" + place.port + " within 1 s"));
  EXPECT_THAT(
      [&] {
        handOut(number.data(), number.size(), process(1, 2),
                {"no.such.host.invalid", "1"});
      },
      ThrowsMessage<std::runtime_error>(
          HasSubstr("MASTER_ADDR no.such.host.invalid, port 1: ")));
}

} // namespace
} // namespace mtplan::runtime::cuda
