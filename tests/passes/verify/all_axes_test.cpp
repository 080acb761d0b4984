//===- all_axes_test.cpp - Random plans over all options ------------------===//
//
// Proves random plans over all options of the search (drawn_plan.h) for every
// family. The test counts the options, so that none can silently go untested.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "passes/verify/prove.h"
#include "tests/passes/verify/drawn_plan.h"

namespace mtplan::passes {
namespace {

/// Counts proofs by option.
using Count = std::map<std::string, int>;

void count(const Drawn &drawn, mlir::ModuleOp planned, Count &tried) {
  const Parallelism &config = drawn.config;
  for (auto [name, size] : {std::pair("dp", config.dp),
                            {"ep", config.ep},
                            {"cp", config.cp},
                            {"tp", config.tp},
                            {"tp2", config.tp2},
                            {"pp", config.pp},
                            {"vp", config.virtualStages}})
    tried[name] += size > 1;
  ++tried["zero " + std::to_string(config.zeroStage)];
  tried["hybrid"] += config.zeroStage > 0 && config.zeroRanks < config.dp;
  tried["16 ranks"] += config.dp * config.cp * config.tp == 16;
  ++tried["micro-batches " + std::to_string(drawn.microBatches)];
  tried[planner::nameOf(config.schedule)] += config.pp > 1;
  bool again = false, owned = false;
  planned.walk(
      [&](ir::ComputeOp op) { again |= op.getLabel().ends_with(".again"); });
  planned.walk([&](ir::StoreOp) { owned = true; });
  // A model without repeated layers recomputes nothing.
  bool repeats = false;
  planned.walk(
      [&](ir::ComputeOp op) { repeats |= op.getLabel().contains('*'); });
  tried[std::string("recompute ") + planner::nameOf(config.recompute)] +=
      again == (repeats && config.recompute != Recompute::none);
  tried["split update"] += owned;
}

Proof prove(const Family &family, const Drawn &drawn, Count &tried) {
  const Parallelism &config = drawn.config;
  DrawnStep made(family, drawn);
  count(drawn, *made.planned, tried);
  return passes::prove(*made.step.module, *made.planned,
                       {.seed = drawn.seed,
                        .microBatches = drawn.microBatches,
                        .schedule = config.schedule});
}

class AllAxes : public ::testing::TestWithParam<Family> {};

TEST_P(AllAxes, RandomPlansHold) {
  const int proofs = std::getenv("MTPLAN_TEST_ALL") ? 300 : 25;
  // Four layers allow two virtual stages on each of two stages.
  Family family = GetParam();
  if (family.layers > 0)
    family.layers = 4;
  const bool hasExperts = family.splits.contains("expert");
  const int layers = planner::layersOf(Step(family, 1, 1).graph);
  Random random = randomOf(family, 0);
  Count tried;
  double worst = 0.0;
  for (int i = 0; i < proofs; ++i) {
    Drawn drawn = draw(random, hasExperts, layers, /*twoTensorAxes=*/true);
    SCOPED_TRACE(textOf(drawn));
    Proof proof = prove(family, drawn, tried);
    EXPECT_TRUE(proof.holds) << ::testing::PrintToString(proof.failures)
                             << ", worst " << proof.worstError;
    EXPECT_EQ(proof.ranks, drawn.config.dp * drawn.config.cp * drawn.config.tp *
                               drawn.config.pp);
    worst = std::max(worst, proof.worstError);
  }
  RecordProperty("worst", std::to_string(worst));
  for (const char *thing : {"dp",
                            "cp",
                            "tp",
                            "pp",
                            "zero 0",
                            "zero 1",
                            "zero 2",
                            "zero 3",
                            "hybrid",
                            "16 ranks",
                            "gpipe",
                            "1f1b",
                            "zero-bubble",
                            "micro-batches 1",
                            "micro-batches 2",
                            "micro-batches 3",
                            "recompute none",
                            "recompute selective",
                            "recompute full",
                            "split update"})
    EXPECT_GT(tried[thing], 0) << thing;
  EXPECT_EQ(tried["ep"] > 0, hasExperts);
  EXPECT_EQ(tried["tp2"] > 0, !hasExperts);
  EXPECT_EQ(tried["vp"] > 0, layers >= 4);
  EXPECT_EQ(tried["interleaved"], tried["vp"]);
}

INSTANTIATE_TEST_SUITE_P(Families, AllAxes, ::testing::ValuesIn(families()));

} // namespace
} // namespace mtplan::passes
