//===- communicator_test.cpp - Collectives and messages -------------------===//

#include <array>
#include <cstdlib>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <thread>

#include <sched.h>

#include <gtest/gtest.h>

#include "runtime/communicator/launch.h"
#include "tests/runtime/communicator/cases.h"

namespace mtplan::runtime {
namespace {

std::vector<int> ranksUpTo(int count) {
  std::vector<int> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

class Collectives : public testing::TestWithParam<int> {};

// The cases cover every collective, type and reduction, and odd and empty
// shapes.
TEST_P(Collectives, AreThoseOfPlainLoops) {
  const int size = GetParam();
  runOnThreads(size, {}, [&](World &world) {
    const auto group = world.group("all", ranksUpTo(size));
    EXPECT_EQ(group->size(), size);
    EXPECT_EQ(group->place(), world.rank());
    EXPECT_NO_THROW(runCases(*group, 17 + size, 250));
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, Collectives, testing::Range(1, 6));

TEST(Communicator, TwoRunsGiveTheSameBits) {
  std::array<std::uint64_t, 2> digests{};
  for (auto &digest : digests)
    runOnThreads(3, {}, [&](World &world) {
      const auto group = world.group("all", {0, 1, 2});
      const Bytes results = runCases(*group, 5, 100);
      if (world.rank() == 1)
        digest = digestOf(results);
    });
  EXPECT_EQ(digests[0], digests[1]);
}

// 1 + 2^-9 needs more than the 8 significant bits of bf16. Rounding after each
// addition would keep the sum at 1; rounding once gives 1 + 2^-7.
TEST(Communicator, NarrowSumsAreRoundedOnce) {
  runOnThreads(5, {}, [](World &world) {
    const auto group = world.group("all", ranksUpTo(5));
    const Bf16 in = toBf16(world.rank() == 0 ? 1.0F : 0x1p-9F);
    Bf16 out;
    group->allReduce("s", &in, &out, {ElementType::bf16, 1, 1}, Reduction::sum);
    EXPECT_EQ(toFloat(out), 1.0F + 0x1p-7F);
  });
}

// 1e30 - 1e30 + 1 is 1 in this order, but 0 if 1 is added earlier.
TEST(Communicator, SumsGoInTheOrderOfPlacesNotOfRanks) {
  runOnThreads(3, {}, [](World &world) {
    const auto group = world.group("turned", {2, 0, 1});
    const std::array<float, 3> byPlace = {1e30F, -1e30F, 1.0F};
    float out = 0.0F;
    group->allReduce("s", &byPlace[group->place()], &out,
                     {ElementType::f32, 1, 1}, Reduction::sum);
    EXPECT_EQ(out, 1.0F);
    EXPECT_EQ(group->place(), (world.rank() + 1) % 3);
  });
}

TEST(Communicator, MaximumOverNanIsNan) {
  for (int bad = 0; bad < 3; ++bad)
    runOnThreads(3, {}, [&](World &world) {
      const auto group = world.group("all", ranksUpTo(3));
      const float in = world.rank() == bad
                           ? std::numeric_limits<float>::quiet_NaN()
                           : static_cast<float>(world.rank());
      float out = 0.0F;
      group->allReduce("m", &in, &out, {ElementType::f32, 1, 1},
                       Reduction::max);
      EXPECT_TRUE(std::isnan(out)) << bad;
    });
}

// The ranks of a 2 x 2 mesh use groups of rows and of columns in turn. Two
// groups have the same ranks.
TEST(Communicator, GroupsDoNotDisturbEachOther) {
  runOnThreads(4, {}, [](World &world) {
    const int rank = world.rank();
    const int row = rank / 2 * 2, column = rank % 2;
    const auto rows = world.group("tp", {row, row + 1});
    const auto columns = world.group("dp", {column, column + 2});
    const auto again = world.group("tp", {row, row + 1});
    const std::int32_t in = 1 << (8 * rank);
    for (int i = 0; i < 200; ++i) {
      std::int32_t sum = 0;
      const auto reduce = [&](Communicator &group) {
        group.allReduce("s", &in, &sum, {ElementType::i32, 1, 1},
                        Reduction::sum);
        return sum;
      };
      EXPECT_EQ(reduce(*columns), column == 0 ? 0x00010001 : 0x01000100);
      EXPECT_EQ(reduce(*rows), row == 0 ? 0x00000101 : 0x01010000);
      EXPECT_EQ(reduce(*again), row == 0 ? 0x00000101 : 0x01010000);
    }
  });
}

// Two threads of each rank use one group each, in no fixed order.
TEST(Communicator, ARankMayUseGroupsFromSeveralThreads) {
  runOnThreads(2, {}, [](World &world) {
    const auto one = world.group("one", {0, 1});
    const auto two = world.group("two", {0, 1});
    const auto use = [&](Communicator &group) {
      for (int i = 0; i < 300; ++i) {
        const std::int32_t in = i + world.rank();
        std::int32_t out = 0;
        group.allReduce("s", &in, &out, {ElementType::i32, 1, 1},
                        Reduction::sum);
        EXPECT_EQ(out, 2 * i + 1);
      }
    };
    std::thread other([&] { use(*two); });
    use(*one);
    other.join();
  });
}

TEST(Communicator, MessagesArriveInOrderOfTheirChannel) {
  runOnThreads(3, {}, [](World &world) {
    constexpr int kCount = 100;
    const int to = (world.rank() + 1) % 3, from = (world.rank() + 2) % 3;
    // All ranks send before they receive, because a send does not wait.
    for (int i = 0; i < kCount; ++i)
      for (const int channel : {4, 0}) {
        std::vector<int> message(i % 7 + 1, 1000 * world.rank() + channel + i);
        world.send("m", message.data(), message.size() * sizeof(int), to,
                   channel);
        message.assign(message.size(), -1);
      }
    for (const int channel : {0, 4})
      for (int i = 0; i < kCount; ++i) {
        std::vector<int> message(i % 7 + 1);
        world.receive("m", message.data(), message.size() * sizeof(int), from,
                      channel);
        for (const int value : message)
          EXPECT_EQ(value, 1000 * from + channel + i);
      }
  });
}

TEST(Communicator, AReceiverMayWaitForItsMessage) {
  runOnThreads(2, {}, [](World &world) {
    std::vector<int> data(100000);
    for (int i = 0; i < 50; ++i)
      if (world.rank() == i % 2) {
        data.assign(data.size(), i);
        world.send("there", data.data(), data.size() * sizeof(int), 1 - i % 2,
                   0);
      } else {
        world.receive("there", data.data(), data.size() * sizeof(int), i % 2,
                      0);
        EXPECT_EQ(data, std::vector<int>(data.size(), i));
      }
  });
}

TEST(Communicator, ARankMaySendToItself) {
  runOnThreads(1, {}, [](World &world) {
    int value = 7, got = 0;
    world.send("own", &value, sizeof(value), 0, 2);
    world.receive("own", &got, sizeof(got), 0, 2);
    EXPECT_EQ(got, 7);
  });
}

TEST(Communicator, BarrierWaitsForAllRanks) {
  std::atomic<int> arrived{0};
  runOnThreads(4, {}, [&](World &world) {
    for (int round = 1; round <= 100; ++round) {
      ++arrived;
      world.barrier("round");
      EXPECT_GE(arrived, 4 * round);
      world.barrier("seen");
    }
  });
}

TEST(Communicator, ThreadsShareTheCoresOfTheirProcess) {
  std::thread([] {
    cpu_set_t all, some;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&some);
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (!CPU_ISSET(core, &all))
        continue;
      CPU_SET(core, &some);
      ASSERT_EQ(sched_setaffinity(0, sizeof some, &some), 0);
      const int cores = CPU_COUNT(&some);
      EXPECT_EQ(coresOfRank({}, 1), cores);
      EXPECT_EQ(coresOfRank({}, cores), 1);
    }
  }).join();
}

// Each rank computes how many cores it may use. Ranks of one process share its
// cores.
TEST(Communicator, RanksOfOneProcessShareItsCores) {
  for (const int ranks : {1, 2, 64})
    runOnThreads(ranks, {}, [&](World &world) {
      EXPECT_EQ(coresOfRank(world), coresOfRank({}, ranks));
    });
}

// There are more ranks than processors on most machines.
TEST(Communicator, ManyRanksOnFewProcessors) {
  runOnThreads(16, {}, [](World &world) {
    const auto group = world.group("all", ranksUpTo(16));
    for (int i = 0; i < 100; ++i) {
      const std::int32_t in = i;
      std::int32_t out = 0;
      group->allReduce("s", &in, &out, {ElementType::i32, 1, 1},
                       Reduction::sum);
      EXPECT_EQ(out, 16 * i);
    }
  });
}

} // namespace
} // namespace mtplan::runtime
