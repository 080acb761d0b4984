//===- stream_run_test.cpp - Runs in any order that waits allow -----------===//
//
// Compiles random plans over all axes (drawn_plan.h). The waits of a plan are
// minimal, and every program gives the same bits in a random order that the
// waits allow. All ranks of a stage run one program and therefore take the same
// order.
//
//===----------------------------------------------------------------------===//

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/verify/prove.h"
#include "runtime/plan/plan_check.h"
#include "tests/codegen/stream_order.h"
#include "tests/executable/run_plan.h"
#include "tests/passes/verify/drawn_plan.h"

namespace mtplan::passes {
namespace {

using runtime::Plan;
using runtime::Program;
using runtime::Stage;
using testing::Contains;
using testing::StartsWith;

struct Compiled {
  Plan plan;
  ir::RunOptions options;
};

Compiled compiledPlan(const Family &family, const Drawn &drawn) {
  DrawnStep made(family, drawn);
  std::optional<ProofPair> pair =
      buildProofPair(*made.step.module, *made.planned);
  if (!pair)
    throw std::runtime_error("no program");
  setElementType(*pair->partitioned,
                 mlir::Float32Type::get(pair->partitioned->getContext()));
  Compiled all;
  all.plan = compiled(*pair->partitioned, drawn.config.schedule,
                      drawn.microBatches, false, drawn.seed % 2 == 0);
  all.options.seed = drawn.seed;
  all.options.microBatches = drawn.microBatches;
  return all;
}

std::unique_ptr<runtime::Backend> makeOneThread() {
  return runtime::makeCpuBackend(1);
}

using Elements = std::map<std::string, std::vector<double>>;

Elements elementsOf(const Gathered &ran) {
  Elements all;
  auto add = [&](const char *kind, const Gathered::Table &table) {
    for (const auto &[key, whole] : table)
      all[kind + key.name()] = whole.elements;
  };
  add("gradient ", ran.gradients);
  add("parameter ", ran.parameters);
  add("first moment ", ran.firstMoments);
  add("second moment ", ran.secondMoments);
  for (const auto &[label, value] : ran.reports)
    all["report " + label] = {value};
  all["norm"] = {ran.gradientNorm};
  return all;
}

std::vector<std::string> differing(const Elements &a, const Elements &b) {
  std::vector<std::string> names;
  for (const auto &[name, elements] : a)
    if (!b.contains(name) || b.at(name) != elements)
      names.push_back(name);
  return names;
}

class StreamsOfFamilies : public ::testing::TestWithParam<Family> {
protected:
  template <typename Act> void forEachDrawn(std::uint64_t salt, Act act) {
    const int runs = std::getenv("MTPLAN_TEST_ALL") ? 40 : 3;
    Family family = GetParam();
    if (family.layers > 0)
      family.layers = 4;
    const bool hasExperts = family.splits.contains("expert");
    const int layers = planner::layersOf(Step(family, 1, 1).graph);
    Random random = randomOf(family, salt);
    for (int i = 0; i < runs; ++i) {
      Drawn drawn = draw(random, hasExperts, layers);
      SCOPED_TRACE(textOf(drawn));
      act(compiledPlan(family, drawn), random);
    }
  }
};

TEST_P(StreamsOfFamilies, AreOrderedByTheFewestWaits) {
  int waits = 0;
  forEachDrawn(3, [&](Compiled all, Random &random) {
    for (std::size_t s = 0; s < all.plan.stages.size(); ++s) {
      Stage &stage = all.plan.stages[s];
      for (std::size_t p = 0; p < stage.programs.size(); ++p) {
        Program &program = stage.programs[p];
        const std::vector<std::vector<int>> least =
            leastWaits(program, meetings(stage, static_cast<int>(p)));
        for (std::size_t i = 0; i < least.size(); ++i) {
          std::vector<int> &has = program.instructions[i].waits;
          EXPECT_EQ(has, least[i])
              << stage.programs[p].name << " instruction " << i;
          waits += static_cast<int>(has.size());
          if (has.empty() || !random.oneIn(10))
            continue;
          const int taken = has.back();
          has.pop_back();
          // If instruction i starts a batch, any instruction of the batch may
          // need the wait.
          std::vector<int> launch{static_cast<int>(i)};
          for (const runtime::Batch &batch : program.batches)
            if (batch.instructions.front() == static_cast<int>(i))
              launch = batch.instructions;
          std::vector<testing::Matcher<std::string>> faults;
          for (const int one : launch)
            faults.push_back(StartsWith(
                "/stages/" + std::to_string(s) + "/programs/" +
                std::to_string(p) + "/instructions/" + std::to_string(one) +
                "/waits: must order this after instruction " +
                std::to_string(taken) + " ("));
          if (launch.size() > 1) // the check may name the batch
            faults.push_back(StartsWith("/stages/" + std::to_string(s) +
                                        "/programs/" + std::to_string(p) +
                                        "/batches/"));
          EXPECT_THAT(runtime::checkPlan(all.plan),
                      Contains(testing::AnyOfArray(faults)));
          has.push_back(taken);
        }
      }
    }
  });
  EXPECT_GT(waits, 30);
}

TEST_P(StreamsOfFamilies, AllowedOrdersKeepBits) {
  int moved = 0;
  forEachDrawn(5, [&](Compiled all, Random &random) {
    auto run = [&](const Plan &plan) {
      Gathered ran = runPlan(plan, all.options, makeOneThread, 1e-6, 2);
      EXPECT_EQ(ran.faults, std::vector<std::string>());
      return elementsOf(ran);
    };
    const Elements whole = run(all.plan);
    std::mt19937_64 generator(random.word());
    for (int order = 0; order < 2; ++order) {
      Plan other = all.plan;
      for (Stage &stage : other.stages)
        for (Program &program : stage.programs) {
          Program next = shuffled(program, generator);
          for (std::size_t i = 0; i < next.instructions.size(); ++i)
            moved += next.instructions[i].label != program.instructions[i].label
                         ? 1
                         : 0;
          program = std::move(next);
        }
      EXPECT_EQ(runtime::checkPlan(other), std::vector<std::string>());
      EXPECT_EQ(differing(whole, run(other)), std::vector<std::string>());
    }
  });
  EXPECT_GT(moved, 20);
}

INSTANTIATE_TEST_SUITE_P(Families, StreamsOfFamilies,
                         ::testing::ValuesIn(families()));

} // namespace
} // namespace mtplan::passes
