//===- stages_test.cpp - Interpreted pipeline stages ----------------------===//

#include <gmock/gmock.h>

#include "ir/interpret/interpret.h"
#include "tests/ir/interpret/interpret_testing.h"

namespace mtplan::ir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The model is x = w, y = 3 x + w. Both stages use w; c passes through unused.
const char *const kLogical = R"(
  mtp.segment @a () {
    %w = mtp.parameter "w" : tensor<4xf64>
    mtp.backward (%dx: tensor<4xf64>) {
      mtp.accumulate "w", %dx : tensor<4xf64>
      mtp.yield
    }
    mtp.yield %w : tensor<4xf64>
  }
  mtp.segment @b (%x: tensor<4xf64>) {
    %w = mtp.parameter "w" : tensor<4xf64>
    %v = mtp.parameter "v" : tensor<4xf64>
    %t = mtp.scale "triple" (%x) by 3.0 : tensor<4xf64>
    %y = mtp.add "add" (%t, %w) : tensor<4xf64>
    %z = mtp.mul "mul" (%y, %v) : tensor<4xf64>
    %s = mtp.sum "total" (%z) : (tensor<4xf64>) -> tensor<f64>
    mtp.accumulate "loss", %s : tensor<f64>
    mtp.backward () {
      mtp.accumulate "w", %v : tensor<4xf64>
      mtp.accumulate "v", %y : tensor<4xf64>
      %dx = mtp.scale "triple.dx" (%v) by 3.0 : tensor<4xf64>
      mtp.yield %dx : tensor<4xf64>
    }
    mtp.yield
  }
  mtp.update {
    %g = mtp.accumulated "w" : tensor<4xf64>
    mtp.adamw "w", %g : tensor<4xf64>
    %h = mtp.accumulated "v" : tensor<4xf64>
    mtp.adamw "v", %h : tensor<4xf64>
    %l = mtp.accumulated "loss" : tensor<f64>
    mtp.result "loss", %l : tensor<f64>
  }
)";

// This is the same program on two stages of two ranks, with all tensors sharded
// over tp. Tests replace the parts in <>.
const char *const kFirst = R"(
  mtp.segment @a chunk 0 () {
    %w = mtp.parameter "w" {layout = #mtp.layout<[["tp"]]>} : tensor<2xf64>
    mtp.backward (%dx: tensor<2xf64>) {
      mtp.accumulate "w", %dx {layout = #mtp.layout<[["tp"]]>} : tensor<2xf64>
      mtp.yield
    }
    mtp.yield %w : tensor<2xf64>
  }
  mtp.segment @out chunk 0 (%x: tensor<2xf64>) {
    mtp.send "x", %x to 1 : tensor<2xf64>
    mtp.backward () {
      %dx = mtp.receive "dx" from 1 : tensor<2xf64>
      mtp.yield %dx : tensor<2xf64>
    }
    mtp.yield
  }
)";
const char *const kSecond = R"(
  mtp.segment @in chunk 1 () {
    %x = mtp.receive "x" from 0 : tensor<2xf64>
    mtp.backward (%dx: tensor<2xf64>) {
      mtp.send "dx", %dx to 0 : tensor<2xf64>
      mtp.yield
    }
    mtp.yield %x : tensor<2xf64>
  }
  mtp.segment @b chunk 1 (%x: tensor<2xf64>) {
    %w = mtp.parameter "w" {layout = #mtp.layout<[["tp"]]>} : tensor<2xf64>
    %v = mtp.parameter "v" {layout = #mtp.layout<[["tp"]]>} : tensor<2xf64>
    %t = mtp.scale "triple" (%x) by 3.0 {mtp.strategy = #mtp.strategy<"tp" = "d0">} : tensor<2xf64>
    %y = mtp.add "add" (%t, %w) {mtp.strategy = #mtp.strategy<"tp" = "d0">} : tensor<2xf64>
    %z = mtp.mul "mul" (%y, %v) {mtp.strategy = #mtp.strategy<"tp" = "d0">} : tensor<2xf64>
    %s = mtp.sum "total" (%z) {mtp.strategy = #mtp.strategy<"tp" = "d0">} : (tensor<2xf64>) -> tensor<f64>
    mtp.accumulate "loss", %s {layout = #mtp.layout<[], partial = ["tp"]>} : tensor<f64>
    mtp.backward () {
      mtp.accumulate "w", %v {layout = #mtp.layout<[["tp"]]>} : tensor<2xf64>
      mtp.accumulate "v", %y {layout = #mtp.layout<[["tp"]]>} : tensor<2xf64>
      %dx = mtp.scale "triple.dx" (%v) by 3.0 {mtp.strategy = #mtp.strategy<"tp" = "d0">} : tensor<2xf64>
      mtp.yield %dx : tensor<2xf64>
    }
    mtp.yield
  }
)";
const char *const kUpdates = R"(
  mtp.update on 0 {
    %g = mtp.accumulated "w" : tensor<2xf64>
    %s = mtp.all_reduce %g over "pp" among [0, 1] cause "w" : tensor<2xf64>
    mtp.adamw "w", %s : tensor<2xf64>
  }
  mtp.update on 1 {
    %h = mtp.accumulated "v" : tensor<2xf64>
    mtp.adamw "v", %h : tensor<2xf64>
    %g = mtp.accumulated "w" : tensor<2xf64>
    %s = mtp.all_reduce %g over "pp" among [0, 1] cause "w" : tensor<2xf64>
    mtp.adamw "w", %s : tensor<2xf64>
    %l = mtp.accumulated "loss" : tensor<f64>
    %a = mtp.all_reduce %l over "tp" cause "loss" : tensor<f64>
    mtp.result "loss", %a : tensor<f64>
  }
)";

class InterpretStages : public InterpretTest {
protected:
  static std::string staged(const std::string &body) {
    return "module attributes {mtp.mesh = #mtp.mesh<\"pp\" = 2, \"tp\" = 2>, "
           "mtp.partitioned} {\n" +
           body + "\n}";
  }
  static std::string both() { return std::string(kFirst) + kSecond + kUpdates; }
  // Returns the error of the program after replacing `from` by `to`.
  std::string errorWith(const std::string &from, const std::string &to,
                        const RunOptions &options = {}) {
    return errorOf(staged(replaced(both(), from, to)), true, options);
  }
};

constexpr Phase kForward = Phase::forward, kBackward = Phase::backward;

TEST_F(InterpretStages, ComputeWhatOneRankDoes) {
  const RunResult whole = run(kLogical), split = run(staged(both()));
  const Comparison comparison = compareRuns(whole, split);
  EXPECT_LT(comparison.worst, 1e-14) << comparison.kind << comparison.name;
  EXPECT_EQ(comparison.tensors, 1 + 2 + 2);
  // Ranks 0 and 1 are stage 0, which has neither v nor the loss.
  const auto holders = [](const DistributedTensor &tensor) {
    std::vector<bool> holds;
    for (std::int64_t rank = 0; rank < 4; ++rank)
      holds.push_back(tensor.holds(rank));
    return holds;
  };
  EXPECT_THAT(holders(split.parameters.at({"w", 0})),
              ElementsAre(true, true, true, true));
  EXPECT_THAT(holders(split.parameters.at({"v", 0})),
              ElementsAre(false, false, true, true));
  EXPECT_THAT(holders(split.results.at({"loss", 0})),
              ElementsAre(false, false, true, true));
  // There are two micro-batches. The all-reduce over pp counts once for each of
  // its two stages.
  const std::map<CollectiveKey, std::int64_t> counts = {
      {{Phase::forward, "send", "pp"}, 2},
      {{Phase::forward, "receive", "pp"}, 2},
      {{Phase::backward, "send", "pp"}, 2},
      {{Phase::backward, "receive", "pp"}, 2},
      {{Phase::update, "all_reduce", "pp"}, 2},
      {{Phase::update, "all_reduce", "tp"}, 1}};
  EXPECT_EQ(split.collectives, counts);
}

TEST_F(InterpretStages, ATiedWeightWithoutItsSumDiffers) {
  // Stage 0 takes part in the sum of both stages but does not use the result.
  const RunResult whole = run(kLogical);
  const RunResult split = run(
      staged(replaced(both(), R"(mtp.adamw "w", %s)", R"(mtp.adamw "w", %g)")));
  const Comparison comparison = compareRuns(whole, split);
  EXPECT_GT(comparison.worst, 1e-3);
  EXPECT_EQ(comparison.name, "w");
  EXPECT_LT(comparison.rank, 2);
}

TEST_F(InterpretStages, RunTasksInAnyValidOrder) {
  RunOptions options;
  const double whole = run(kLogical).results.at({"loss", 0}).ranks[0].data[0];
  const auto loss = [&] {
    return run(staged(both()), options)
        .results.at({"loss", 0})
        .ranks[2]
        .data[0];
  };
  // Stage 0 runs all forward tasks first; stage 1 alternates (1F1B).
  options.order = {{{kForward, 0, 0},
                    {kForward, 0, 1},
                    {kBackward, 0, 0},
                    {kBackward, 0, 1}},
                   {{kForward, 1, 0},
                    {kBackward, 1, 0},
                    {kForward, 1, 1},
                    {kBackward, 1, 1}}};
  EXPECT_NEAR(loss(), whole, 1e-12);
}

TEST_F(InterpretStages, RejectInvalidOrders) {
  const std::string text = staged(both());
  RunOptions options;
  // Stage 1 sends the gradient of its second micro-batch first.
  options.order = {{{kForward, 0, 0},
                    {kForward, 0, 1},
                    {kBackward, 0, 0},
                    {kBackward, 0, 1}},
                   {{kForward, 1, 0},
                    {kForward, 1, 1},
                    {kBackward, 1, 1},
                    {kBackward, 1, 0}}};
  EXPECT_THAT(errorOf(text, true, options),
              HasSubstr("expects \"dx\" of micro-batch 0 from stage 1"));
  // Stage 0 waits for a gradient before stage 1 can compute it.
  options.order[1] = {
      {kForward, 1, 0}, {kForward, 1, 1}, {kBackward, 1, 0}, {kBackward, 1, 1}};
  options.order[0] = {
      {kForward, 0, 0}, {kBackward, 0, 0}, {kForward, 0, 1}, {kBackward, 0, 1}};
  EXPECT_THAT(errorOf(text, true, options),
              HasSubstr("deadlocks: stage 0 waits for \"dx\" of "
                        "micro-batch 0 from stage 1"));
  std::swap(options.order[0][0], options.order[0][1]);
  EXPECT_THAT(errorOf(text, true, options),
              HasSubstr("runs for micro-batch 0 before its forward half has"));
  options.order[0].pop_back();
  EXPECT_THAT(
      errorOf(text, true, options),
      HasSubstr("stage 0 has 4 tasks, of which its order of 3 is none"));
  options.order.pop_back();
  EXPECT_THAT(errorOf(text, true, options),
              HasSubstr("has 2 stages, but tasks are ordered for 1"));
}

TEST_F(InterpretStages, ErrorsNameMissingMessages) {
  EXPECT_THAT(errorWith(R"(mtp.send "x", %x to 1 : tensor<2xf64>)", ""),
              HasSubstr("deadlocks: stage 0 waits for \"dx\" of micro-batch 0 "
                        "from stage 1"));
  EXPECT_THAT(errorWith(R"(mtp.send "dx", %dx to 0 : tensor<2xf64>)", ""),
              HasSubstr("stage 0 waits for \"dx\""));
  EXPECT_THAT(errorWith(R"(mtp.receive "x" from)", R"(mtp.receive "y" from)"),
              HasSubstr("expects \"y\" of micro-batch 0 from stage 0"));
  EXPECT_THAT(
      errorWith(R"(%dx = mtp.receive "dx" from 1 : tensor<2xf64>)",
                R"(%dx = mtp.parameter "w" {layout = #mtp.layout<[["tp"]]>}
                       : tensor<2xf64>)"),
      HasSubstr("sends \"dx\" of micro-batch 0 to stage 0, which never "
                "receives it"));
}

TEST_F(InterpretStages, ErrorsNameMismatchedSums) {
  const std::string sum =
      R"(mtp.all_reduce %g over "pp" among [0, 1] cause "w")";
  EXPECT_THAT(errorWith("%s = " + sum + " : tensor<2xf64>\n", R"(%s =
        mtp.scale "same" (%g) by 1.0 {mtp.strategy = #mtp.strategy<"tp" = "d0">}
        : tensor<2xf64>
      )"),
              HasSubstr("deadlocks: stage 1 waits for stage 0 to sum"));
  EXPECT_THAT(
      errorWith(sum, R"(mtp.all_reduce %g over "pp" among [0, 1] cause "u")"),
      HasSubstr("is the next all-reduce of stage 0, for \"u\", but that of "
                "another stage in its group is for \"w\""));
  EXPECT_THAT(errorOf(replaced(staged(both() + R"(
        mtp.update on 2 {
          %g = mtp.accumulated "w" : tensor<2xf64>
          %s = mtp.all_reduce %g over "pp" among [0, 1] cause "w" : tensor<2xf64>
        })"),
                               "\"pp\" = 2", "\"pp\" = 3")),
              HasSubstr("reads an accumulator to which no operation adds"));
  // A collective without coordinates is over all stages.
  run(staged(
      replaced(both(), sum, R"(mtp.all_reduce %g over "pp" cause "w")")));
}

TEST_F(InterpretStages, RejectSegmentsWithoutAStage) {
  EXPECT_THAT(errorWith("@b chunk 1", "@b"),
              HasSubstr("has no chunk, unlike others of its module"));
  EXPECT_THAT(errorOf(staged(std::string(kFirst) + kSecond + R"(
    mtp.update {
      %h = mtp.accumulated "v" : tensor<2xf64>
      mtp.adamw "v", %h : tensor<2xf64>
    })")),
              HasSubstr("is of no stage, but segments are"));
}

} // namespace
} // namespace mtplan::ir
