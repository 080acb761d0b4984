//===- reading_test.cpp - Checkpoints that cannot be read ------===//
//
// One by one, the calls that read checkpoints at a start fail, or find a file
// that was truncated meanwhile. The run resumes from the previous checkpoint
// and ends with the same state.
//
//===----------------------------------------------------------------------===//

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/executable/fault_runs.h"

namespace mtplan {
namespace {

namespace fs = std::filesystem;

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

struct Reading {
  const char *plan;
  /// Tests one call in this many, or each with MTPLAN_TEST_ALL.
  std::size_t share;
};

void PrintTo(const Reading &reading, std::ostream *out) {
  *out << reading.plan;
}

class CheckpointReading : public FaultRuns,
                          public testing::WithParamInterface<Reading> {
protected:
  void SetUp() override {
    if (const std::string why = whyNoFaults(); !why.empty())
      GTEST_SKIP() << why;
    keep();
    const FaultOrders orders{
        .under = to, .action = "", .log = place("calls"), .reads = true};
    const Ended ended = RunProcess(withFaults(orders, command())).end();
    ASSERT_EQ(ended.code, 0) << ended.out;
    calls = linesOf(place("calls"));
    // Removes the calls of the next save, which reads files for their
    // checksums.
    calls.resize(firstOf(calls, "step-00000008"));
    ASSERT_GT(calls.size(), 60U);
  }

  // Copies the checkpoints of steps 4 and 6 from an undisturbed run.
  void keep() const {
    fs::remove_all(to);
    fs::create_directory(to);
    for (const std::string step : {"step-00000004", "step-00000006"})
      fs::copy(fs::path(undisturbed(plan)) / step, fs::path(to) / step);
    std::ofstream(to + "/latest") << "step-00000006\n";
  }

  std::vector<std::string> command() const { return threads(plan, to); }

  Ended runWith(const std::string &action, std::size_t at) const {
    keep();
    Ended ended = RunProcess(withFaults({.under = to,
                                         .action = action,
                                         .at = static_cast<long>(at),
                                         .reads = true},
                                        command()))
                      .end();
    EXPECT_EQ(ended.code, 0) << ended.out;
    EXPECT_THAT(
        differing(to + "/step-00000008", undisturbed(plan) + "/step-00000008"),
        IsEmpty());
    return ended;
  }

  /// Makes each call in turn fail by `action`, and expects `words` in warnings.
  void failEach(const std::string &action, const std::string &words) {
    std::set<std::string> tensors;
    int passedOver = 0;
    for (std::size_t at = 1; at <= calls.size() && !HasFailure(); at += share) {
      const std::string &call = calls[at - 1];
      SCOPED_TRACE(std::to_string(at) + ": " + call);
      const std::string file = call.substr(call.find(' ') + 1);
      const Ended ended = runWith(action, at);
      const auto warnings = ended.lines("warning: skipped a checkpoint: rank ");
      EXPECT_THAT(ended.lines("warning: "), SizeIs(warnings.size()));
      EXPECT_THAT(ended.lines("goes on from step "),
                  ElementsAre(warnings.empty() ? "6" : "4"));
      // An unreadable manifest may or may not cause a warning.
      if (plan == "one" && file.ends_with(".safetensors")) {
        ASSERT_THAT(warnings, SizeIs(1)) << ended.out;
      }
      for (const std::string &warning : warnings) {
        ++passedOver;
        // The rank that reports first differs between runs.
        EXPECT_THAT(
            warning.substr(3),
            StartsWith(plan == "one" ? file + ": " : to + "/step-00000006/"));
        EXPECT_THAT(warning, testing::ContainsRegex(words));
        if (const std::size_t name = warning.find(", in tensor ");
            name != std::string::npos)
          tensors.insert(warning.substr(name));
      }
    }
    EXPECT_GT(passedOver, 8);
    // A weight and each of its moments are counted separately.
    EXPECT_GE(tensors.size(), share == 1 ? 48U : 5U);
  }

  const std::string plan = GetParam().plan;
  const std::string to = place("to");
  const std::size_t share =
      std::getenv("MTPLAN_TEST_ALL") ? 1 : GetParam().share;
  std::vector<std::string> calls;
};

TEST_P(CheckpointReading, UnreadableCheckpointIsSkipped) {
  failEach(std::to_string(EIO), "Input/output error");
}

TEST_P(CheckpointReading, TruncatedCheckpointIsSkipped) {
  failEach("shrink", "ends |has 0 |manifest.json: ");
}

TEST_P(CheckpointReading, InterruptedReadsAreRetried) {
  for (const std::string &action :
       {std::to_string(EINTR), std::string("half")}) {
    const Ended ended = runWith(action, 0);
    EXPECT_THAT(ended.lines("warning: "), IsEmpty());
    EXPECT_THAT(ended.lines("goes on from step "), ElementsAre("6"));
  }
}

// Access to a truncated page of a mapping would end the process by SIGBUS.
TEST_P(CheckpointReading, TouchesNoMappedPage) {
  const Ended ended = runWith("wall", 0);
  EXPECT_THAT(ended.lines("goes on from step "), ElementsAre("6"));
}

TEST_P(CheckpointReading, RunFailsIfNoneIsReadable) {
  keep();
  const Ended ended = RunProcess(withFaults({.under = to,
                                             .action = std::to_string(EIO),
                                             .at = 0,
                                             .reads = true},
                                            command()))
                          .end();
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.out, HasSubstr("no checkpoint there can be gone on from"));
  EXPECT_THAT(ended.lines("warning: skipped a checkpoint: "), SizeIs(2));
  EXPECT_THAT(namesIn(to),
              ElementsAre("latest", "lock", "step-00000004", "step-00000006"));
}

INSTANTIATE_TEST_SUITE_P(Runs, CheckpointReading,
                         testing::Values(Reading{"one", 7}, Reading{"two", 37}),
                         [](const auto &test) {
                           return std::string(test.param.plan);
                         });

class TextReading : public FaultRuns {};

// Calls that read training data may fail in the same ways.
TEST_F(TextReading, UnreadableTextFailsWithAMessage) {
  if (const std::string why = whyNoFaults(); !why.empty())
    GTEST_SKIP() << why;
  const std::string text = place("text.txt"), to = place("to"),
                    log = place("calls");
  const auto run = [&](const FaultOrders &orders) {
    fs::remove_all(to);
    fs::copy_file(kText, text, fs::copy_options::overwrite_existing);
    return RunProcess(withFaults(orders, threads("two", to, {"--data", text})))
        .end();
  };
  EXPECT_EQ(run({.under = text, .action = "", .log = log, .reads = true}).code,
            0);
  const auto calls = static_cast<long>(linesOf(log).size());
  EXPECT_GT(calls, 32); // at least one per sample
  for (const auto &[action, words] :
       {std::pair(std::to_string(EIO), "Input/output error"),
        std::pair(std::string("shrink"), "ends here|has 0 now")})
    for (long at = calls; at > 0; at -= 11) {
      SCOPED_TRACE(action + " at " + std::to_string(at));
      const Ended ended =
          run({.under = text, .action = action, .at = at, .reads = true});
      EXPECT_EQ(ended.code, 2);
      const auto errors = ended.lines("error: ");
      ASSERT_THAT(errors, SizeIs(1)) << ended.out;
      EXPECT_THAT(errors[0], StartsWith(text + ": "));
      EXPECT_THAT(errors[0], testing::ContainsRegex(words));
    }
}

} // namespace
} // namespace mtplan
