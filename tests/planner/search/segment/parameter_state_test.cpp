//===- parameter_state_test.cpp - How parameters are stored ---------------===//

#include <vector>

#include <gtest/gtest.h>

#include "planner/search/segment/parameter_state.h"
#include "tests/planner/random_model.h"

namespace mtplan::planner {
namespace {

std::vector<StepKind> kindsOf(const std::vector<ReshardStep> &steps) {
  std::vector<StepKind> kinds;
  kinds.reserve(steps.size());
  for (const ReshardStep &step : steps)
    kinds.push_back(step.kind);
  return kinds;
}

// A bias has one dimension, which both tp and ZeRO split.
TEST(ParameterState, OneReduceScatterLeadsToTheShardOfASplitBias) {
  ModelGraph model;
  Parameter bias;
  bias.name = "bias";
  bias.shape = {64};
  bias.splits = {Split::column};
  model.parameters = {bias};
  const Machine machine = roundMachine();
  Parallelism config;
  config.dp = config.zeroRanks = 4;
  config.tp = 2;
  config.zeroStage = 1;
  SearchOptions options;
  options.tensorSplits = {Split::column};
  const Setting setting = settingOf(options, machine, config);
  const int tensorAxis = tensorAxisOf(setting.mesh);
  int split = 0;
  for (const ParameterState &state : parameterStates(model, 0, setting)) {
    if (placementOf(state.stored, tensorAxis) != 0 ||
        !state.reducedOncePerStep.empty())
      continue;
    ++split;
    ASSERT_EQ(state.owned().dims[0].size(), 2U);
    EXPECT_EQ(state.owned().dims[0].front(), tensorAxis);
    const Layout sum = accumulatorLayout(state, setting.mesh);
    EXPECT_EQ(kindsOf(reshardSteps(sum, state.owned())),
              std::vector{StepKind::reduceScatter});
    EXPECT_EQ(kindsOf(reshardSteps(state.owned(), state.stored)),
              std::vector{StepKind::allGather});
  }
  EXPECT_EQ(split, 1);
}

} // namespace
} // namespace mtplan::planner
