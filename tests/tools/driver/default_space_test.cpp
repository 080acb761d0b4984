//===- default_space_test.cpp - What a command without flags searches -----===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/tools/command_testing.h"
#include "tests/tools/planning.h"
#include "tools/driver/read_flags.h"

namespace mtplan::tools {
namespace {

using Json = nlohmann::ordered_json;
using planner::ScheduleKind;
using planner::Split;
using testing::HasSubstr;

PlanRequest requestOf(std::map<std::string, std::string> texts) {
  Flags flags;
  flags.texts["MODEL"] = examplePath("tiny-gpt2");
  for (const auto &[flag, text] : texts)
    flags.texts[flag] = text;
  std::vector<std::string> errors;
  PlanRequest request = readFlags(flags, errors);
  EXPECT_EQ(errors, std::vector<std::string>());
  return request;
}

TEST(DefaultSpace, IsOpenUnlessAFlagDecides) {
  PlanRequest request = requestOf({});
  EXPECT_TRUE(request.pp.only.empty() && request.cp.only.empty() &&
              request.ep.only.empty() && request.schedule.only.empty() &&
              request.virtualStages.only.empty() &&
              request.zeroStage.only.empty() && request.recompute.only.empty());
  EXPECT_EQ(request.splits, defaultSplits());
  EXPECT_THAT(request.splits, testing::Not(testing::Contains(Split::batch)));

  request = requestOf({{"--open", "none"}});
  EXPECT_EQ(request.pp.only, std::vector{1});
  EXPECT_EQ(request.zeroStage.only, std::vector{0});
  EXPECT_EQ(request.schedule.only,
            std::vector{ScheduleKind::oneForwardOneBackward});

  request = requestOf({{"--open", "pp,zero"}, {"--zero", "1"}});
  EXPECT_TRUE(request.pp.only.empty());
  EXPECT_EQ(request.zeroStage.only, std::vector{1});
  EXPECT_EQ(request.cp.only, std::vector{1});

  EXPECT_EQ(requestOf({{"--splits", "all"}}).splits, allSplits());
  EXPECT_EQ(requestOf({{"--tolerance", "0"}}).tolerance, 0.0);
  EXPECT_EQ(requestOf({{"--tolerance", "2.5"}}).tolerance, 0.025);
}

TEST(DefaultSpace, LeavesOutWhatIsNotCompiled) {
  const ScheduleKind zeroBubble = ScheduleKind::zeroBubble;
  EXPECT_TRUE(requestOf({}).schedule.allows(zeroBubble));
  EXPECT_FALSE(requestOf({{"-o", "run"}}).schedule.allows(zeroBubble));
  EXPECT_TRUE(requestOf({{"-o", "run"}, {"--schedule", "zero-bubble"}})
                  .schedule.allows(zeroBubble));
}

TEST(DefaultSpace, NamesWordsThatCannotBeOpened) {
  const Ran ran({examplePath("tiny-gpt2"), "--open", "zeros"});
  EXPECT_EQ(ran.code, kBadInput);
  EXPECT_THAT(ran.err, HasSubstr("--open: unknown choice (or all, none) "
                                 "\"zeros\"; nearest first, known are zero"));
}

// The default's plan takes less than 0.9 of the time of the former default's,
// which left only dp, tp and the micro-batch open. Llama-3 70B fits on 16 GPUs.
TEST(DefaultSpace, FindsWhatRestrictedSpacesMiss) {
  const auto planOf = [](const char *model, std::vector<std::string> flags) {
    flags.insert(flags.begin(), examplePath(model));
    flags.emplace_back("--json");
    const Ran ran(flags);
    EXPECT_EQ(ran.code, kDone) << ran.err;
    return Json::parse(ran.out);
  };
  const auto stepOf = [](const Json &plan) {
    return plan["prediction"]["step_time_s"].get<double>();
  };
  const std::vector<std::string> dgx{"--gpus", "8", "--hardware", "dgx-2h"};
  std::vector<std::string> closed = dgx;
  closed.insert(closed.end(), {"--open", "none", "--splits", "all"});
  const Json open = planOf("gpt2-8.3b", dgx);
  EXPECT_LT(stepOf(open), 0.9 * stepOf(planOf("gpt2-8.3b", closed)));
  EXPECT_EQ(open["plan"]["kinds"], 1);
  // The goal is a gap of 0.001, which this search does not reach.
  RecordProperty("gap", open["search"]["gap"].dump());
  EXPECT_LE(open["search"]["gap"].get<double>(), 5e-3);
  EXPECT_LE(open["search"]["slower_than_fastest"].get<double>(), 0.01);
  EXPECT_GT(stepOf(planOf("llama-3-70b", {"--gpus", "16"})), 0.0);
}

// A plan leaves 4 % of the memory free, unless no plan that does so fits.
TEST(DefaultSpace, KeepsMemoryFreeUnlessNothingElseFits) {
  int kept = 0, filled = 0, none = 0;
  for (int layers = 64; layers <= 160; layers += 3) {
    SCOPED_TRACE(layers);
    PlanRequest request = requestOf({{"MODEL", examplePath("gpt2-8.3b")},
                                     {"--hardware", "dgx-2h"},
                                     {"--gpus", "8"},
                                     {"--tp", "8"},
                                     {"--dp", "1"},
                                     {"--micro-batch", "1"},
                                     {"--open", "none"},
                                     {"--layers", std::to_string(layers)}});
    const PlanOutcome outcome = plan(request);
    if (!outcome.best()) {
      ++none;
      continue;
    }
    const planner::MemoryUse &memory = outcome.best()->memory;
    EXPECT_EQ(memory.limit, outcome.problem->machine.device.memory);
    if (outcome.keptFree.value > 0) {
      EXPECT_LE(memory.total(), memory.limit * 0.96);
      ++kept;
    } else {
      EXPECT_GT(memory.total(), memory.limit * 0.96);
      ++filled;
    }
  }
  EXPECT_GT(kept, 5);
  EXPECT_GT(filled, 0);
  EXPECT_GT(none, 5);
}

TEST(DefaultSpace, ClosesContextRanksOfModelsWithExperts) {
  const std::string model = examplePath("tiny-mixtral");
  EXPECT_THAT(Ran({model, "--gpus", "4", "--hardware", "cpu"}).out,
              HasSubstr("note: cp is 1, because"));
  for (const char *flag : {"--cp=any", "--open=pp,cp,ep"})
    EXPECT_THAT(Ran({model, "--gpus", "4", "--hardware", "cpu", flag}).out,
                testing::Not(HasSubstr("note: cp is 1")));
}

} // namespace
} // namespace mtplan::tools
