//===- parity_test.cpp - Executable plans compute what the model does -----===//
//
// Random plans over everything (drawn_plan.h), compiled, written, read back and
// run on a thread a rank by the reference kernels in double precision, against
// the model interpreted on one rank: loss, every gradient, their norm, every
// parameter after the update, and how often each collective ran.
//
//===----------------------------------------------------------------------===//

#include <cstdlib>

#include <gtest/gtest.h>

#include "codegen/executable_plan.h"
#include "passes/memory/element_type.h"
#include "passes/schedule/tasks.h"
#include "passes/verify/prove.h"
#include "runtime/plan/plan_check.h"
#include "runtime/plan/plan_json.h"
#include "tests/executable/run_plan.h"
#include "tests/passes/drawn_plan.h"

namespace mtplan::runtime {
inline void PrintTo(const CollectiveCount &count, std::ostream *out) {
  *out << count.phase << " " << count.kind << " over " << count.group;
}
} // namespace mtplan::runtime

namespace mtplan::passes {
namespace {

std::optional<runtime::Plan> compile(mlir::ModuleOp partitioned,
                                     const Drawn &drawn) {
  writeTasks(partitioned, drawn.how.schedule, drawn.microBatches);
  mlir::PassManager manager(partitioned.getContext());
  manager.addPass(createPlaceMemoryPass());
  if (mlir::failed(manager.run(partitioned)))
    return std::nullopt;
  mlir::FailureOr<runtime::Plan> plan =
      codegen::executablePlanOf(partitioned, "drawn");
  if (mlir::failed(plan))
    return std::nullopt;
  return runtime::parsePlan(runtime::planText(*plan));
}

// Counts without phases' words for what the interpreter counts beside.
std::map<runtime::CollectiveCount, std::int64_t>
census(const ir::RunResult &result) {
  std::map<runtime::CollectiveCount, std::int64_t> counts;
  for (const auto &[key, count] : result.collectives) {
    if (key.op == "slice" || key.op == "mask" || count == 0)
      continue;
    const char *phase = key.phase == ir::Phase::forward    ? "forward"
                        : key.phase == ir::Phase::backward ? "backward"
                                                           : "update";
    counts[{phase, key.op, key.axis}] = count;
  }
  return counts;
}

class ExecutablePlan : public ::testing::TestWithParam<Family> {};

TEST_P(ExecutablePlan, ComputesWhatTheModelDoes) {
  const int runs = std::getenv("MTPLAN_TEST_ALL") ? 100 : 8;
  Family family = GetParam();
  if (family.layers > 0)
    family.layers = 4;
  const bool hasExperts = family.splits.contains("expert");
  const int layers = planner::layersOf(Step(family, 1, 1).graph);
  Dice dice = diceOf(family, 7);
  for (int i = 0; i < runs; ++i) {
    Drawn drawn = draw(dice, hasExperts, layers);
    SCOPED_TRACE(textOf(drawn));
    DrawnStep made(family, drawn);
    std::optional<ProofPair> pair =
        buildProofPair(*made.step.module, *made.planned);
    ASSERT_TRUE(pair);
    auto wide = mlir::Float64Type::get(pair->partitioned->getContext());
    setElementType(*pair->partitioned, wide);
    setElementType(*pair->logical, wide);
    ir::RunOptions options;
    options.seed = drawn.seed;
    options.microBatches = drawn.microBatches;
    options.adam.epsilon = 1e-3;
    auto expected = ir::interpret(*pair->logical, options);
    options.order =
        tasksOf(*pair->partitioned, drawn.how.schedule, drawn.microBatches);
    auto partitioned = ir::interpret(*pair->partitioned, options);
    ASSERT_TRUE(mlir::succeeded(expected) && mlir::succeeded(partitioned));
    std::optional<runtime::Plan> plan = compile(*pair->partitioned, drawn);
    ASSERT_TRUE(plan);
    EXPECT_EQ(runtime::checkPlan(*plan), std::vector<std::string>());
    Gathered ran =
        runPlan(*plan, options, runtime::makeReferenceBackend, 1e-12);
    EXPECT_EQ(ran.faults, std::vector<std::string>());
    std::string worst;
    double difference = worstDifference(ran, *expected, worst);
    EXPECT_LE(difference, 1e-10) << worst;
    // Every rank counts; the interpreter counts all ranks of a stage as one.
    std::map<runtime::CollectiveCount, std::int64_t> counts;
    for (const auto &[key, count] : ran.collectives)
      counts[{key.phase, key.kind, key.group.substr(0, key.group.find(' '))}] +=
          count;
    for (auto &[key, count] : counts)
      count /= plan->ranks / drawn.how.pp;
    EXPECT_EQ(counts, census(*partitioned));
  }
}

INSTANTIATE_TEST_SUITE_P(Families, ExecutablePlan,
                         ::testing::ValuesIn(families()));

} // namespace
} // namespace mtplan::passes
