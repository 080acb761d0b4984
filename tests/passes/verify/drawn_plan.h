//===- drawn_plan.h - Random plans over all options -------------*- C++ -*-===//
//
// Draws random plans from all options of the search: data, expert, context and
// tensor parallelism, on one or two tensor axes, on up to 16 ranks per stage;
// ZeRO of any stage over all or some of the replicas; up to four pipeline
// stages with any split of layers, or two virtual stages on each of two; every
// schedule; recomputation of some or all layers; one to four micro-batches; and
// any legal strategies and layouts.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_PASSES_VERIFY_DRAWN_PLAN_H
#define MTPLAN_TESTS_PASSES_VERIFY_DRAWN_PLAN_H

#include <algorithm>
#include <string>

#include "passes/schedule/recompute.h"
#include "passes/schedule/stages.h"
#include "planner/search/search.h"
#include "tests/passes/verify/random_plan.h"

namespace mtplan::passes {

using planner::Parallelism;
using planner::Recompute;
using planner::ScheduleKind;
using planner::Split;

/// Holds the random choices of one proof.
struct Drawn {
  Parallelism config;
  std::vector<Split> splits; ///< splits that the tensor axis may have
  int microBatches = 1;
  std::uint64_t seed = 0;
};

class Random {
public:
  explicit Random(std::uint64_t seed) : engine(seed) {}

  std::uint64_t word() { return engine(); }
  int below(int limit) {
    return static_cast<int>(engine() % static_cast<std::uint64_t>(limit));
  }
  bool oneIn(int chances) { return below(chances) == 0; }

private:
  std::mt19937_64 engine;
};

/// Returns a random generator that depends on the family and `salt`.
inline Random randomOf(const Family &family, std::uint64_t salt) {
  for (char letter : family.example)
    salt = salt * 31 + static_cast<unsigned char>(letter);
  return Random(salt);
}

// Distributes up to 16 ranks over the axes, by factors of two.
inline void drawMesh(Random &random, bool hasExperts, Parallelism &config) {
  int ranks = 2 << random.below(4);
  for (; ranks > 1; ranks /= 2) {
    int *const axes[] = {&config.dp, &config.tp, &config.cp};
    *axes[random.below(3)] *= 2;
  }
  while (hasExperts && config.ep < config.dp && random.oneIn(2))
    config.ep *= 2;
  config.zeroStage = random.below(4);
  config.zeroRanks = config.dp;
  while (config.zeroRanks > config.ep && random.oneIn(2))
    config.zeroRanks /= 2;
}

// Cuts the layers into random virtual stages, one or two per stage.
inline void drawPipeline(Random &random, int layers, Drawn &drawn) {
  Parallelism &config = drawn.config;
  constexpr int kMost = 4;
  int parts = std::min({1 + random.below(kMost), layers, kMost});
  std::set<int> cuts;
  while (static_cast<int>(cuts.size()) < parts - 1)
    cuts.insert(1 + random.below(layers - 1));
  int begin = 0;
  for (int cut : cuts) {
    config.layers.push_back(cut - begin);
    begin = cut;
  }
  config.layers.push_back(layers - begin);
  config.pp = parts;
  drawn.microBatches = 1 + random.below(3);
  constexpr ScheduleKind kKinds[] = {ScheduleKind::gpipe,
                                     ScheduleKind::oneForwardOneBackward,
                                     ScheduleKind::zeroBubble};
  config.schedule = kKinds[random.below(3)];
  if (parts < kMost || random.oneIn(2))
    return;
  config.pp = config.virtualStages = 2;
  config.schedule = ScheduleKind::interleaved;
  drawn.microBatches = 2 * (1 + random.below(2));
}

// Divides the tensor ranks into two axes. Fewer splits, and no context ranks,
// keep the problem small enough for the exact solver.
inline void divideTensorRanks(Drawn &drawn) {
  Parallelism &config = drawn.config;
  config.tp2 = 2;
  config.dp *= config.cp;
  config.cp = 1;
  config.zeroRanks = config.dp;
  for (Split split : {Split::batch, Split::sequence, Split::hidden})
    std::erase(drawn.splits, split);
  if (std::ranges::find(drawn.splits, Split::column) == drawn.splits.end())
    drawn.splits.push_back(Split::column);
}

/// \param twoTensorAxes  whether more than two tensor ranks of a model without
/// experts form two axes
inline Drawn draw(Random &random, bool hasExperts, int layers,
                  bool twoTensorAxes = false) {
  Drawn drawn;
  drawMesh(random, hasExperts, drawn.config);
  for (Split split : {Split::batch, Split::sequence, Split::column, Split::row,
                      Split::head, Split::vocab, Split::expert, Split::hidden})
    if (!random.oneIn(3))
      drawn.splits.push_back(split);
  // Fewer splits keep the problem small enough for the exact solver.
  if (drawn.config.ep > 1 && drawn.config.tp > 1) {
    std::size_t most = drawn.config.cp > 1 ? 1 : 2;
    std::erase(drawn.splits, Split::batch);
    std::erase(drawn.splits, Split::sequence);
    while (drawn.splits.size() > most)
      drawn.splits.erase(drawn.splits.begin() +
                         random.below(static_cast<int>(drawn.splits.size())));
  } else if (hasExperts && drawn.config.tp > 1) {
    std::erase(drawn.splits, random.oneIn(2) ? Split::batch : Split::sequence);
  }
  // Row splits alone have no plan with unsharded storage, because a partial sum
  // has to be reduced before the next product.
  auto allows = [&](Split split) {
    return std::ranges::find(drawn.splits, split) != drawn.splits.end();
  };
  if (allows(Split::row) && !allows(Split::column) && !allows(Split::batch) &&
      !allows(Split::sequence))
    drawn.splits.push_back(Split::column);
  drawPipeline(random, layers, drawn);
  constexpr Recompute kKinds[] = {Recompute::none, Recompute::selective,
                                  Recompute::full};
  drawn.config.recompute = kKinds[random.below(3)];
  drawn.config.recomputeLayers = random.below(3) - 1;
  drawn.seed = random.word();
  if (twoTensorAxes && !hasExperts && drawn.config.tp > 2)
    divideTensorRanks(drawn);
  return drawn;
}

inline std::string textOf(const Drawn &drawn) {
  const Parallelism &config = drawn.config;
  std::string text =
      "dp " + std::to_string(config.dp) + " ep " + std::to_string(config.ep) +
      " cp " + std::to_string(config.cp) + " tp " + std::to_string(config.tp) +
      " tp2 " + std::to_string(config.tp2) + " pp " +
      std::to_string(config.pp) + " vp " +
      std::to_string(config.virtualStages) + " " +
      planner::nameOf(config.schedule) + " zero " +
      std::to_string(config.zeroStage) + " over " +
      std::to_string(config.zeroRanks) + " recompute " +
      planner::nameOf(config.recompute) + " of " +
      std::to_string(config.recomputeLayers) + " micro-batches " +
      std::to_string(drawn.microBatches) + " seed " +
      std::to_string(drawn.seed) + " splits";
  for (Split split : drawn.splits)
    text += std::string(" ") + planner::nameOf(split);
  return text;
}

inline planner::Setting settingOf(const Drawn &drawn) {
  static const planner::Machine machine = planner::loadMachine("dgx-1");
  planner::SearchOptions options;
  options.tensorSplits = options.splitsOfTwoAxes = drawn.splits;
  options.precision = planner::Precision::fp16;
  planner::Setting setting = planner::settingOf(options, machine, drawn.config);
  setting.microBatches = drawn.microBatches;
  return setting;
}

/// Makes a training step and applies a random plan to it.
struct DrawnStep {
  DrawnStep(const Family &family, const Drawn &drawn)
      : setting(settingOf(drawn)),
        step(family, setting.mesh, 2L * drawn.config.dp * drawn.config.tp) {
    const Parallelism &config = drawn.config;
    std::vector<planner::PipelinePart> parts =
        planner::pipelineParts(step.graph, config.layers);
    RandomPlanner planner(step.graph, setting, parts);
    RecomputedRuns runs = cutForRecompute(
        step.graph, planner.plan(drawn.seed), config.layers,
        config.recompute == Recompute::none ? 0 : config.recomputeLayers);
    planned = step.planned(runs.plans);
    for (auto [segment, again] :
         llvm::zip_equal(planned->getOps<ir::SegmentOp>(), runs.again))
      if (again)
        recompute(segment, config.recompute);
    placeOnStages(*planned, parts, config.pp);
  }

  planner::Setting setting;
  Step step;
  mlir::OwningOpRef<mlir::ModuleOp> planned;
};

} // namespace mtplan::passes

#endif // MTPLAN_TESTS_PASSES_VERIFY_DRAWN_PLAN_H
