//===- proof_matrix_test.cpp - Random plans equal the model ---------------===//
//
// Compares twenty random plans of every family on every mesh with the model on
// one rank. Dropout is on. Each family's plans must together have every kind of
// collective and every split, so that no rule silently goes untested.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "passes/verify/prove.h"
#include "planner/graph/layout.h"
#include "tests/passes/verify/random_plan.h"

namespace mtplan::passes {
namespace {

constexpr std::uint64_t kSeeds = 20;

using Words = std::set<std::string>;

/// Holds the collectives and splits in a family's plans.
struct Tried {
  Words steps, splits;
  bool apart = false; ///< two runs of a segment have different strategies
  int proofs = 0;
  double worst = 0.0;
  std::string where;
};

void note(const Step &step, const std::vector<planner::SegmentPlan> &plans,
          Tried &tried) {
  for (const planner::SegmentPlan &plan : plans) {
    const auto &ops =
        step.graph.segments[static_cast<std::size_t>(plan.segment)].ops;
    for (std::size_t o = 0; o < ops.size(); ++o)
      tried.splits.insert(
          planner::wordOf(ops[o], plan.strategies[o], planner::kTensorAxis));
  }
  for (std::size_t i = 1; i < plans.size(); ++i)
    tried.apart |= plans[i].segment == plans[i - 1].segment &&
                   plans[i].strategies != plans[i - 1].strategies;
}

void noteSteps(mlir::ModuleOp planned, const planner::Mesh &mesh,
               Tried &tried) {
  planned.walk([&](ir::ReshardOp op) {
    for (const planner::ReshardStep &step :
         planner::reshardSteps(*toPlanner(op.getSource(), mesh),
                               *toPlanner(op.getTarget(), mesh)))
      tried.steps.insert(planner::nameOf(step.kind));
  });
}

class ProofMatrix : public ::testing::TestWithParam<Family> {
protected:
  void prove(Step &step, std::uint64_t seed, RandomPlanner &planner) {
    std::vector<planner::SegmentPlan> plans = planner.plan(seed);
    mlir::OwningOpRef<mlir::ModuleOp> module = step.planned(plans);
    Proof proof = passes::prove(*step.module, *module, {.seed = seed + 1});
    ++tried.proofs;
    EXPECT_TRUE(proof.holds) << ::testing::PrintToString(proof.failures)
                             << ", worst " << proof.worstError;
    EXPECT_EQ(proof.ranks, step.mesh.ranks());
    if (proof.worstError > tried.worst) {
      tried.worst = proof.worstError;
      tried.where = proof.worst;
    }
    note(step, plans, tried);
    noteSteps(*module, step.mesh, tried);
  }

  Tried tried;
};

TEST_P(ProofMatrix, RandomPlansHold) {
  bool repeats = false;
  for (int dp : {1, 2})
    for (int tp : {1, 2, 4, 8}) {
      Step step(GetParam(), dp, tp);
      ASSERT_TRUE(step.module);
      EXPECT_EQ(step.dropsOut(), GetParam().hasDropout);
      for (const planner::SegmentGraph &segment : step.graph.segments)
        repeats |= segment.repeat > 1;
      RandomPlanner apart(step.graph, step.mesh, /*splitRuns=*/true);
      RandomPlanner together(step.graph, step.mesh, /*splitRuns=*/false);
      for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        SCOPED_TRACE("dp " + std::to_string(dp) + " tp " + std::to_string(tp) +
                     " seed " + std::to_string(seed));
        prove(step, seed, seed % 2 ? together : apart);
      }
    }
  RecordProperty("worst", std::to_string(tried.worst));
  EXPECT_EQ(tried.proofs, 8 * static_cast<int>(kSeeds));
  EXPECT_EQ(tried.steps, (Words{"all_gather", "all_reduce", "all_to_all",
                                "mask", "reduce_scatter", "slice"}));
  EXPECT_EQ(tried.splits, GetParam().splits);
  EXPECT_EQ(tried.apart, repeats);
}

// Replicas hold different experts and different samples, and exchange tokens.
TEST(ExpertRanks, RandomPlansExchangeTokensAndHold) {
  using planner::Split;
  for (const Family &family : families()) {
    if (!family.splits.contains("expert"))
      continue;
    int trades = 0, bySamples = 0, byExperts = 0;
    for (auto [ep, tp] :
         {std::pair(2, 1), std::pair(4, 1), std::pair(8, 1), std::pair(2, 2)}) {
      // Two unrestricted axes and a shared expert are too much for the exact
      // solver.
      if (tp > 1 && family.example != "tiny-mixtral")
        continue;
      Step step(family, ep, tp);
      RandomPlanner planner(step.graph, step.mesh, /*splitRuns=*/true,
                            {Split::expert, Split::batch});
      for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        SCOPED_TRACE(family.example + " ep " + std::to_string(ep) + " seed " +
                     std::to_string(seed));
        mlir::OwningOpRef<mlir::ModuleOp> module =
            step.planned(planner.plan(seed));
        Proof proof = passes::prove(*step.module, *module, {.seed = seed + 1});
        EXPECT_TRUE(proof.holds) << ::testing::PrintToString(proof.failures)
                                 << ", worst " << proof.worstError;
        module->walk([&](ir::ComputeOp op) {
          if (!op.getLabel().contains("moe.act"))
            return;
          auto strategy =
              op->getAttrOfType<ir::StrategyAttr>(ir::kStrategyAttrName);
          byExperts += strategy.factorOf("dp") == "d0";
          bySamples += strategy.factorOf("dp") == "d1";
        });
        module->walk([&](ir::ReshardOp op) {
          for (const planner::ReshardStep &change :
               planner::reshardSteps(*toPlanner(op.getSource(), step.mesh),
                                     *toPlanner(op.getTarget(), step.mesh)))
            trades += op.getCause().contains("moe.") && change.axis == 0 &&
                      change.kind == planner::StepKind::allToAll;
        });
      }
    }
    EXPECT_GT(trades, 100) << family.example;
    EXPECT_GT(bySamples, 10) << family.example;
    EXPECT_GT(byExperts, 10) << family.example;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, ProofMatrix,
                         ::testing::ValuesIn(families()));

} // namespace
} // namespace mtplan::passes
