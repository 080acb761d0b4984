//===- workspace_limit_test.cpp - Causes of a large workspace -------------===//

#include <gtest/gtest.h>

#include "planner/search/segment/segment_plan.h"
#include "planner/search/segment/step_link.h"
#include "planner/search/stage/stage_solver.h"
#include "tests/planner/random_model.h"
#include "tests/planner/search/space/space_case.h"
#include "tests/planner/solve/exhaustive.h"

namespace mtplan::planner {
namespace {

// Returns every legal assignment of the problem.
std::vector<Assignment> legalOf(const Problem &problem) {
  std::vector<Assignment> legal;
  if (contains(problem.domains, 0))
    return legal;
  Assignment assignment(problem.domains.size(), 0);
  do
    if (!std::isinf(costOf(problem, assignment).time))
      legal.push_back(assignment);
  while (advance(assignment, problem.domains));
  return legal;
}

bool agree(const Assignment &assignment, const Forbidden &forbidden) {
  return std::ranges::all_of(forbidden.values, [&](const auto &one) {
    return assignment[at(one.first)] == one.second;
  });
}

// Assignments with all forbidden values are left out, and no others.
TEST(Forbid, LeavesOutOneCombination) {
  std::mt19937_64 random(1);
  auto draw = [&](int count) {
    return static_cast<int>(random() % static_cast<unsigned long>(count));
  };
  for (int round = 0; round < 200; ++round) {
    Problem problem;
    const int variables = 1 + draw(6);
    Forbidden forbidden;
    for (int v = 0; v < variables; ++v) {
      problem.domains.push_back(1 + draw(3));
      problem.tables.push_back(
          {{v}, std::vector<double>(at(problem.domains.back()), 1.0), {}});
      if (draw(3) > 0 || (v + 1 == variables && forbidden.values.empty()))
        forbidden.values.emplace_back(v, draw(problem.domains.back()));
    }
    Problem without = problem;
    forbid(without, forbidden);
    EXPECT_EQ(check(without), std::vector<std::string>());
    std::vector<Assignment> expected;
    for (const Assignment &one : legalOf(problem))
      if (!agree(one, forbidden))
        expected.push_back(one);
    std::vector<Assignment> found = legalOf(without);
    for (Assignment &one : found)
      one.resize(at(variables));
    EXPECT_EQ(found, expected);
    for (const CostTable &table : without.tables)
      EXPECT_LE(table.scope.size(), 3U);
  }
}

// Every assignment with the forbidden values needs at least the workspace of
// the assignment that they were taken from. A stage needs at least the
// workspace of each of its repeats.
TEST(Forbid, ValuesDecideAboutTheWorkspace) {
  int larger = 0, equal = 0, recomputed = 0, buffered = 0;
  for (unsigned seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    RandomModel random(seed);
    const ModelGraph model =
        random.model(1, random.draw(1, 2), random.draw(0, 1));
    Machine machine = roundMachine();
    SearchOptions options;
    options.tensorSplits = {Split::sequence, Split::row, Split::column};
    Parallelism config;
    config.dp = random.draw(1, 2);
    config.tp = random.draw(1, 2);
    config.microBatch = RandomModel::kSamples / config.dp;
    config.globalBatch = 8;
    config.zeroStage = random.draw(0, 3);
    config.zeroRanks = config.dp;
    config.recompute = random.oneIn(2) ? Recompute::full : Recompute::none;
    const Setting setting = settingOf(options, machine, config);
    const SegmentProblem problem = buildSegmentProblem(
        model, 0, setting, std::vector<bool>(model.parameters.size(), true));
    const std::vector<Assignment> legal = legalOf(problem.link.problem);
    if (legal.empty())
      continue;
    std::vector<RepeatWorkspace> workspaces;
    for (const Assignment &one : legal) {
      SegmentPlan plan = readAssignment(model, 0, problem, one);
      workspaces.push_back(workspaceOf(model, plan, setting));
      plan.count = random.draw(1, 3);
      EXPECT_GE(memoryOf(model, {plan}, setting).workspace,
                workspaces.back().bytes);
      buffered += plan.count > 1 && memoryOf(model, {plan}, setting).workspace >
                                        workspaces.back().bytes;
    }
    recomputed += config.recompute == Recompute::full;
    for (int round = 0; round < 30; ++round) {
      const auto i = static_cast<std::size_t>(
          random.draw(0, static_cast<int>(legal.size()) - 1));
      const Forbidden forbidden = forbiddenBy(model.segments[0], problem, 0,
                                              legal[i], workspaces[i].tensors);
      ASSERT_TRUE(agree(legal[i], forbidden));
      for (std::size_t j = 0; j < legal.size(); ++j)
        if (agree(legal[j], forbidden)) {
          EXPECT_GE(workspaces[j].bytes, workspaces[i].bytes * (1 - 1e-12));
          larger += workspaces[j].bytes > workspaces[i].bytes;
          equal += i != j;
        }
    }
  }
  EXPECT_GT(equal, 1000);
  EXPECT_GT(larger, 5);
  EXPECT_GT(recomputed, 5);
  EXPECT_GT(buffered, 5);
}

// All repeats of a segment read the same inputs, whether one link holds the
// repeats or two.
TEST(WorkspaceReserve, CountsInputsOncePerSegment) {
  RandomModel random(1);
  ModelGraph model = random.model(3, 1, 1);
  SegmentGraph &first = model.segments[0];
  ASSERT_TRUE(std::ranges::any_of(first.ops[0].operands, [&](const Use &use) {
    return first.tensors[at(use.tensor)].kind == TensorKind::input;
  }));
  first.repeat = 3;
  const Machine machine = roundMachine();
  const SearchOptions options;
  Parallelism config;
  config.microBatch = RandomModel::kSamples;
  config.globalBatch = 8;
  const Setting setting = settingOf(options, machine, config);
  const SegmentProblem problem = buildSegmentProblem(
      model, 0, setting, std::vector<bool>(model.parameters.size(), true));
  EXPECT_EQ(
      workspaceReserve(model, {{0, &problem, 1}, {0, &problem, 2}}, setting),
      workspaceReserve(model, {{0, &problem, 3}}, setting));
}

} // namespace
} // namespace mtplan::planner
