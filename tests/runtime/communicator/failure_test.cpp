//===- failure_test.cpp - Ranks that fail or are late ---------------------===//

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/communicator/communicator.h"
#include "tests/runtime/communicator/cases.h"

namespace mtplan::runtime {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

constexpr Pieces kOne = {ElementType::f32, 1, 1};

enum class Transport { threads, sockets };

void PrintTo(Transport transport, std::ostream *out) {
  *out << (transport == Transport::threads ? "threads" : "sockets");
}

class CommunicatorFailure : public testing::TestWithParam<Transport> {
protected:
  static RunErrors failing(int ranks, milliseconds patience,
                           const std::function<void(World &)> &body) {
    RunErrors outcome;
    outcome.ofRank.resize(ranks);
    WorldOptions options;
    options.patience = patience;
    options.ending = std::chrono::seconds(60);
    options.gathering = std::chrono::minutes(10);
    const auto noted = [&](World &world) {
      outcome.record(world.rank(), [&] { body(world); });
    };
    if (GetParam() == Transport::threads) {
      try {
        runOnThreads(ranks, options, noted);
      } catch (const std::exception &error) {
        outcome.thrown = error.what();
      }
    } else {
      const auto whys = runOverSockets(tcpStart(ranks), options, noted);
      for (const std::string &why : whys)
        if (outcome.thrown.empty() || !isEcho(why))
          outcome.thrown = why;
    }
    EXPECT_NE(outcome.thrown, "");
    return outcome;
  }

  /// Expects that all ranks fail with a message that names both calls.
  static void
  expectBothSides(const std::function<void(World &, Communicator &)> &body,
                  const std::string &one, const std::string &other);

private:
  static bool isEcho(const std::string &why) {
    return why.empty() || why.find(" failed: ") != std::string::npos;
  }
};

INSTANTIATE_TEST_SUITE_P(All, CommunicatorFailure,
                         testing::Values(Transport::threads,
                                         Transport::sockets),
                         testing::PrintToStringParamName());

void sum(Communicator &group, const std::string &label, Pieces pieces = kOne) {
  std::vector<float> data(pieces.outer * pieces.inner);
  group.allReduce(label, data.data(), data.data(), pieces, Reduction::sum);
}

TEST_P(CommunicatorFailure, LateRankIsNamed) {
  std::atomic<bool> over{false};
  const RunErrors outcome = failing(3, milliseconds(1000), [&](World &world) {
    const auto group = world.group("tp", {0, 1, 2});
    sum(*group, "first");
    if (world.rank() == 1) {
      while (!over)
        std::this_thread::sleep_for(milliseconds(1));
      return;
    }
    try {
      sum(*group, "h.3.mlp.fc2");
    } catch (...) {
      over = true;
      throw;
    }
  });
  const auto named = AllOf(
      HasSubstr("rank 1 did not reach all-reduce \"h.3.mlp.fc2\" of 1 x 1 "
                "f32, sum, in group \"tp\" (ranks 0 1 2) within 1 s"));
  EXPECT_THAT(outcome.ofRank[0], named);
  EXPECT_THAT(outcome.ofRank[2], named);
  EXPECT_THAT(outcome.thrown, named);
  EXPECT_EQ(outcome.ofRank[1], "");
}

TEST_P(CommunicatorFailure, EndedRankIsNotAwaited) {
  // Over sockets, other ranks detect the end of a rank only after the timeout.
  const auto patience = GetParam() == Transport::threads
                            ? std::chrono::minutes(10)
                            : milliseconds(1000);
  const RunErrors outcome = failing(2, patience, [&](World &world) {
    const auto group = world.group("dp", {0, 1});
    if (world.rank() == 0)
      sum(*group, "grads");
  });
  EXPECT_THAT(outcome.thrown,
              HasSubstr("rank 1 ended without reaching all-reduce \"grads\""));
}

// Rank 0 waits for rank 1, which waits for rank 2: the message names rank 2.
TEST_P(CommunicatorFailure, RankAtTheEndOfAChainIsNamed) {
  std::atomic<bool> over{false};
  const RunErrors outcome = failing(3, milliseconds(1500), [&](World &world) {
    int value = 0;
    if (world.rank() == 2) {
      while (!over)
        std::this_thread::sleep_for(milliseconds(1));
      return;
    }
    try {
      if (world.rank() == 0)
        world.receive("h", &value, sizeof(value), 1, 5);
      std::this_thread::sleep_for(milliseconds(100));
      sum(*world.group("tp", {1, 2}), "late");
    } catch (...) {
      over = true;
      throw;
    }
  });
  for (const int rank : {0, 1})
    EXPECT_THAT(outcome.ofRank[rank],
                AllOf(HasSubstr("rank 2 did not reach all-reduce \"late\""),
                      HasSubstr("rank 0 for rank 1 in receive \"h\" of 4 bytes "
                                "from rank 1 on channel 5")));
}

TEST_P(CommunicatorFailure, CircularWaitIsNamed) {
  const RunErrors outcome = failing(2, milliseconds(5000), [&](World &world) {
    int value = 0;
    world.receive("r" + std::to_string(world.rank()), &value, sizeof(value),
                  1 - world.rank(), 0);
  });
  EXPECT_THAT(outcome.thrown,
              AllOf(HasSubstr("ranks wait for each other"),
                    HasSubstr("rank 0 for rank 1 in receive \"r0\""),
                    HasSubstr("rank 1 for rank 0 in receive \"r1\"")));
}

void CommunicatorFailure::expectBothSides(
    const std::function<void(World &, Communicator &)> &body,
    const std::string &one, const std::string &other) {
  const RunErrors outcome =
      failing(3, std::chrono::minutes(10), [&](World &world) {
        const auto group = world.group("all", {0, 1, 2});
        sum(*group, "before");
        body(world, *group);
      });
  for (const std::string &error : outcome.ofRank)
    EXPECT_THAT(error, AllOf(HasSubstr("calls do not match in group \"all\" "
                                       "(ranks 0 1 2)"),
                             HasSubstr("rank 0 calls " + one),
                             HasSubstr("rank 2 calls " + other)));
}

TEST_P(CommunicatorFailure, CallsMustMatch) {
  const auto differs = [](const auto &usual, const auto &of2) {
    return [=](World &world, Communicator &group) {
      if (world.rank() == 2)
        of2(group);
      else
        usual(group);
    };
  };
  std::vector<double> in(64), out(64);
  const auto labelled = [](const char *label) {
    return [label](Communicator &group) { sum(group, label); };
  };
  expectBothSides(differs(labelled("a"), labelled("b")), "all-reduce \"a\"",
                  "all-reduce \"b\"");
  const auto sized = [](Pieces pieces) {
    return [pieces](Communicator &group) { sum(group, "s", pieces); };
  };
  expectBothSides(
      differs(sized({ElementType::f32, 2, 3}), sized({ElementType::f32, 3, 2})),
      "all-reduce \"s\" of 2 x 3 f32", "all-reduce \"s\" of 3 x 2");
  expectBothSides(differs(sized({ElementType::f32, 1, 4}),
                          sized({ElementType::bf16, 1, 4})),
                  "all-reduce \"s\" of 1 x 4 f32",
                  "all-reduce \"s\" of 1 x 4 bf16");
  expectBothSides(differs(labelled("s"),
                          [](Communicator &group) {
                            float x = 0;
                            group.allReduce("s", &x, &x, kOne, Reduction::max);
                          }),
                  "all-reduce \"s\" of 1 x 1 f32, sum",
                  "all-reduce \"s\" of 1 x 1 f32, max");
  expectBothSides(differs(labelled("s"),
                          [](Communicator &group) {
                            float x = 0, all[3];
                            group.allGather("s", &x, all, kOne);
                          }),
                  "all-reduce \"s\"", "all-gather \"s\"");
  const auto from = [](int root) {
    return [root](Communicator &group) {
      float x = 0;
      group.broadcast("b", &x, kOne, root);
    };
  };
  expectBothSides(differs(from(0), from(1)),
                  "broadcast \"b\" of 1 x 1 f32 "
                  "from place 0",
                  "broadcast \"b\" of 1 x 1 f32 from place 1");
}

// One rank makes two calls in the opposite order.
TEST_P(CommunicatorFailure, OrderMustMatch) {
  const auto body = [](World &world, Communicator &group) {
    sum(group, world.rank() == 2 ? "second" : "first");
    sum(group, world.rank() == 2 ? "first" : "second");
  };
  expectBothSides(body, "all-reduce \"first\"", "all-reduce \"second\"");
}

TEST_P(CommunicatorFailure, BarriersMustMatch) {
  const RunErrors outcome =
      failing(2, std::chrono::minutes(10), [](World &world) {
        world.barrier(world.rank() == 0 ? "save" : "load");
      });
  for (const std::string &error : outcome.ofRank)
    EXPECT_THAT(error, AllOf(HasSubstr("rank 0 calls barrier \"save\""),
                             HasSubstr("rank 1 calls barrier \"load\"")));
}

// The sender or the receiver calls first. The mismatch is found either way.
TEST_P(CommunicatorFailure, MessagesMustMatch) {
  for (const int late : {0, 1}) {
    const RunErrors outcome =
        failing(2, std::chrono::minutes(10), [&](World &world) {
          double data[2] = {};
          if (world.rank() == late)
            std::this_thread::sleep_for(milliseconds(50));
          if (world.rank() == 0)
            world.send("h.1", data, 16, 1, 3);
          else
            world.receive("h.1", data, 8, 0, 3);
          world.barrier("after");
        });
    for (const std::string &error : outcome.ofRank)
      EXPECT_THAT(error,
                  AllOf(HasSubstr("on channel 3"),
                        HasSubstr("rank 0 sends \"h.1\" of 16 bytes"),
                        HasSubstr("rank 1 receives \"h.1\" of 8 bytes")));
  }
}

TEST_P(CommunicatorFailure, UnreceivedMessageIsNamed) {
  const RunErrors outcome =
      failing(2, std::chrono::minutes(10), [](World &world) {
        const int value = 1;
        if (world.rank() == 0)
          world.send("lost", &value, sizeof(value), 1, 9);
      });
  EXPECT_EQ(outcome.thrown,
            "rank 1 ended without receive \"lost\" of 4 bytes from rank 0 on "
            "channel 9");
}

// The run throws the error of rank 2, not the errors that follow from it.
TEST(CommunicatorFailureOnThreads, AnExceptionReachesAll) {
  std::vector<std::string> errors(4);
  const auto run = [&] {
    WorldOptions options;
    options.patience = std::chrono::minutes(10);
    options.ending = std::chrono::seconds(60);
    runOnThreads(4, options, [&](World &world) {
      if (world.rank() == 2)
        throw std::out_of_range("no such token");
      try {
        if (world.rank() == 3) {
          int value = 0;
          world.receive("h", &value, sizeof(value), 2, 0);
        } else {
          world.barrier("step");
        }
      } catch (const CommunicationError &error) {
        errors[world.rank()] = error.what();
        throw;
      }
    });
  };
  EXPECT_THROW(run(), std::out_of_range);
  for (const int rank : {0, 1, 3})
    EXPECT_EQ(errors[rank], "rank 2 failed: no such token");
}

TEST_P(CommunicatorFailure, FailingRankReportsItsErrorToAll) {
  const RunErrors outcome =
      failing(3, std::chrono::minutes(10), [](World &world) {
        if (world.rank() == 1)
          world.fail("the disk is full");
        else
          sum(*world.group("dp", {0, 2}), "grads");
        int value = 0;
        if (world.rank() != 1)
          world.send("h", &value, sizeof(value), 1, 0);
      });
  EXPECT_EQ(outcome.thrown, "rank 1 failed: the disk is full");
}

TEST(CommunicatorFailureOnThreads, FailedGroupStaysFailed) {
  std::string error;
  const auto run = [&] {
    runOnThreads(2, {}, [&](World &world) {
      const auto group = world.group("all", {0, 1});
      try {
        sum(*group, world.rank() == 0 ? "a" : "b");
      } catch (const CommunicationError &) {
        try {
          sum(*group, "c");
        } catch (const CommunicationError &again) {
          if (world.rank() == 0)
            error = again.what();
          throw;
        }
      }
    });
  };
  EXPECT_THROW(run(), CommunicationError);
  EXPECT_THAT(error, HasSubstr("a call before it has failed"));
}

TEST(CommunicatorFailureOnThreads, GroupsNeedExistingRanks) {
  runOnThreads(1, {}, [](World &world) {
    const auto saying = [&](const std::vector<int> &ranks) -> std::string {
      try {
        world.group("g", ranks);
      } catch (const CommunicationError &error) {
        return error.what();
      }
      return {};
    };
    EXPECT_THAT(saying({0, 1}), HasSubstr("has rank 1, but there are 1 ranks"));
    EXPECT_THAT(saying({0, 0}), HasSubstr("has rank 0 twice"));
    EXPECT_THAT(saying({}), HasSubstr("requested by rank 0, which is not in"));
    float x = 0;
    EXPECT_THROW(world.send("s", &x, 4, 1, 0), CommunicationError);
    EXPECT_THROW(world.receive("s", &x, 4, -1, 0), CommunicationError);
    EXPECT_THROW(world.send("s", &x, 4, 0, -1), CommunicationError);
    EXPECT_THROW(world.group("g", {0})->broadcast("b", &x, kOne, 1),
                 CommunicationError);
  });
}

TEST(CommunicatorFailureDeathTest, ARankThatNeverEndsEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  WorldOptions options;
  options.patience = milliseconds(100);
  options.ending = milliseconds(100);
  const auto run = [&] {
    runOnThreads(3, options, [](World &world) {
      while (world.rank() == 2)
        std::this_thread::sleep_for(milliseconds(10));
      world.barrier("step 4");
    });
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(1),
              "rank 2 did not reach barrier \"step 4\".*\n.*rank 2 did not "
              "end within 100 ms");
}

} // namespace
} // namespace mtplan::runtime
