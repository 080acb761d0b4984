//===- relaxation_test.cpp - Lower bounds never exceed a plan's step ------===//

#include <numeric>

#include <gtest/gtest.h>

#include "planner/search/bound/bounds.h"
#include "planner/search/bound/relaxation.h"
#include "planner/search/price/memory_use.h"
#include "planner/search/search.h"
#include "planner/search/solve_candidate.h"
#include "planner/search/space/enumerate.h"
#include "planner/search/stage/stage_solver.h"
#include "tests/planner/search/space/space_case.h"

namespace mtplan::planner {
namespace {

// Compares lower bounds of the stages' memory with the memory of the plan.
void compareMemory(const Case &drawn, const ModelGraph &graph,
                   const PlannedCandidate &plan, StageCache &cache) {
  const Parallelism &config = plan.config;
  Setting setting = settingOf(drawn.options, drawn.machine, config);
  const std::vector<MemoryUse> stages =
      memoryByStage(graph, plan.parts, setting, config);
  const std::vector<PipelinePart> parts = pipelineParts(graph, config.layers);
  for (int stage = 0; stage < config.pp; ++stage) {
    std::vector<PipelinePart> held;
    for (std::size_t part = at(stage); part < parts.size();
         part += at(config.pp))
      held.push_back(parts[part]);
    setting.recomputeShare = recomputeShareOf(config, stage);
    const Bytes least =
        StageSolver(graph, setting, config, cache)
            .leastMemory(repeatsOf(graph, held), inFlightOf(config, stage));
    EXPECT_LE(least.value, stages[at(stage)].total().value * (1 + 1e-9))
        << "stage " << stage;
    EXPECT_GE(least.value, stages[at(stage)].reserved.value);
  }
}

// Compares every lower bound of every configuration with the step time of the
// plan found for the configuration. Returns the number of comparisons.
int compare(const Case &drawn) {
  int compared = 0;
  Bounds bounds(drawn.model, drawn.machine, drawn.options);
  Relaxation relaxation(drawn.model, drawn.machine, drawn.options);
  StageCache cache;
  for (const Parallelism &config :
       wholeSpace(drawn.model, drawn.machine, drawn.options)) {
    const ModelGraph graph =
        withBatch(drawn.model, config.microBatch * config.dp);
    const Parallelism once = withCount(config, 0);
    relaxation.prepare({config, once});
    if (relaxation.microBatchOf(config).value == kInfinity)
      continue;
    const Relaxation::StepBound bound = relaxation.stepOf(config);
    relaxation.prepare({config}, boundariesOf(graph, config));
    const CandidateBounds known =
        candidateBounds(graph, config, {}, bounds, relaxation);
    Rejection rejection;
    std::optional<PlannedCandidate> one =
        solveCandidate(graph, drawn.options, drawn.machine, config, known, {},
                       cache, rejection);
    if (!one)
      continue;
    SCOPED_TRACE(testing::Message()
                 << "dp " << config.dp << " tp " << config.tp << " pp "
                 << config.pp << " cp " << config.cp << " v "
                 << config.virtualStages << ' ' << nameOf(config.schedule)
                 << " micro-batch " << config.microBatch << " zero "
                 << config.zeroStage << " of " << config.zeroRanks << " ep "
                 << config.ep << ' ' << nameOf(config.recompute) << ' '
                 << config.recomputeLayers << " layers "
                 << testing::PrintToString(config.layers));
    const double most = one->time.step.value * (1 + 1e-9);
    EXPECT_LE(bounds.memory(config).value,
              one->memory.total().value * (1 + 1e-9));
    compareMemory(drawn, graph, *one, cache);
    if (allowsUnevenCut(config, drawn.options)) {
      EXPECT_LE(bounds.memoryOfAnyCut(config).value,
                one->memory.total().value * (1 + 1e-9));
    }
    if (one->fits) {
      EXPECT_LE(one->lowerBound.value, most);
    }
    EXPECT_LE(bound.quick.value, most);
    EXPECT_LE(stepSecondsOf(bound.least.problem).value, most);
    EXPECT_LE(pathBound(bound.least,
                        std::vector<Seconds>(std::size_t(config.pp)),
                        {kInfinity}, 3)
                  .value,
              most);
    EXPECT_LE(pipelineBound(relaxation.microBatchOf(config), config).value,
              most);
    if (config.pp > 1 && config.virtualStages == 1) {
      EXPECT_LE(cutBound(config, relaxation.layerTimes(config)).value, most);
    }
    Seconds again = bounds.compute(config) - bounds.compute(once);
    EXPECT_LE(
        pipelineBound(relaxation.microBatchOf(once) + again, config).value,
        most);
    ++compared;
  }
  return compared;
}

// Covers expert parallelism, recomputation of some layers, uneven stages and
// hybrid sharding.
TEST(Relaxation, BoundsEveryPlanOfTheSpace) {
  int compared = 0, cut = 0, experts = 0, hybrid = 0, counted = 0;
  for (unsigned seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Case drawn = drawCase(seed);
    openEverything(drawn, seed % 4 == 3 ? 128.0 : 16.0);
    compared += compare(drawn);
    for (const Parallelism &config :
         wholeSpace(drawn.model, drawn.machine, drawn.options)) {
      cut += config.pp > 1 && config.layers.back() > config.layers.front();
      experts += config.ep > 1;
      hybrid += config.zeroStage > 0 && config.zeroRanks < config.dp;
      counted +=
          config.recompute == Recompute::full && config.recomputeLayers > 0;
    }
  }
  EXPECT_GT(compared, 1000);
  EXPECT_GT(cut, 50);
  EXPECT_GT(experts, 50);
  EXPECT_GT(hybrid, 50);
  EXPECT_GT(counted, 50);
}

// Tries every subset of the three overlaps of communication with compute. The
// software slows down overlapped compute.
TEST(Relaxation, BoundsEveryPlanUnderAnyOverlap) {
  Software taxed = defaultSoftware();
  taxed.overlap.tax = 0.3;
  taxed.overlap.taxOneRankPerNode = 0.1;
  taxed.scattersSends = true;
  taxed.parameters.perSharer = Seconds{1e-7};
  taxed.parameters.shardCopies = 3;
  taxed.parameters.bucket = Bytes{1000};
  taxed.fusions.messages = true;
  taxed.stopsRecomputeEarly = true;
  taxed.selective = SelectiveRule::everySecondProduct;
  taxed.tensor.hiddenBackward = 0.5;
  int compared = 0;
  for (int beside = 0; beside < 8; ++beside)
    for (unsigned seed : {0U, 1U, 4U}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ' ' << beside);
      Case drawn = drawCase(seed);
      drawn.options.overlaps = {(beside & 4) != 0,
                                (beside & 1) != 0,
                                (beside & 2) != 0,
                                false,
                                false,
                                false};
      drawn.options.software = &taxed;
      taxed.fusions.devices = {drawn.machine.device.name};
      for (Parameter &parameter : drawn.model.parameters)
        parameter.ofSegment = 0.3;
      compared += compare(drawn);
    }
  EXPECT_GT(compared, 1000);
}

// Tries every subset of the three overlaps of the host's work with the device,
// each with all and with no communication overlapped.
TEST(Relaxation, BoundsEveryPlanWithOffload) {
  int compared = 0;
  Software sweeping = defaultSoftware();
  sweeping.parameters.sweep = 60; // bytes per weight, during the host's work
  for (int beside = 0; beside < 16; ++beside)
    for (unsigned seed : {3U, 9U}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ' ' << beside);
      Case drawn = drawCase(seed);
      drawn.options.offload = {{Offload::optimizer}};
      drawn.options.recompute = {{Recompute::none}};
      drawn.options.software = &sweeping;
      bool hides = (beside & 8) != 0;
      drawn.options.overlaps = {hides,
                                hides,
                                hides,
                                (beside & 1) != 0,
                                (beside & 2) != 0,
                                (beside & 4) != 0};
      compared += compare(drawn);
    }
  EXPECT_GT(compared, 1000);
}

// Chunks are reduced, transferred down, updated and transferred up in a
// pipeline. Each of these phases takes 2 ns per weight. The sum of the phases
// is twice the step time.
TEST(Relaxation, BoundsPipelinedOffload) {
  for (unsigned seed : {0U, 2U, 4U, 6U}) {
    Case drawn = drawCase(seed);
    drawn.machine.levels[0].pointToPoint = BytesPerSec{1e15};
    drawn.model.segments[1].repeat = 16;
    for (Parameter &parameter : drawn.model.parameters)
      parameter.copies = parameter.copies > 1 ? 16 : 1;
    drawn.machine.device.bandwidth = BytesPerSec{1e15};
    drawn.machine.device.fp32 = drawn.machine.device.bf16 = FlopsPerSec{1e15};
    drawn.machine.host =
        Host{Bytes{1e6}, BytesPerSec{14e9}, 1.0, BytesPerSec{1e9}, {}};
    drawn.options.devices = 4;
    drawn.options.dp = 2;
    drawn.options.tp = 1;
    drawn.options.pp = {{2}};
    drawn.options.cp = {{1}};
    drawn.options.virtualStages = {{8}};
    drawn.options.schedule = {{ScheduleKind::interleaved}};
    drawn.options.recompute = {{Recompute::none}};
    drawn.options.offload = {{Offload::optimizer}};
    drawn.options.zeroStage = {{0}};
    drawn.options.overlaps = {};
    EXPECT_GT(compare(drawn), 0);
  }
}

// A parameter that two segments of one stage share needs no reduction over pp.
TEST(Relaxation, TiedParametersWithinAStageNeedNoSum) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    Case drawn = drawCase(seed);
    drawn.model.segments[1].repeat = 1;
    for (Parameter &parameter : drawn.model.parameters)
      parameter.copies = 1;
    for (Tensor &tensor : drawn.model.segments[1].tensors)
      if (tensor.kind == TensorKind::parameter)
        tensor.parameter = 0;
    for (Accumulation &sum : drawn.model.segments[1].accumulations)
      sum.parameter = 0;
    drawn.model.parameters[0].shared = true;
    drawn.options.layers = {2, 1};
    drawn.options.pp = {{2}};
    drawn.options.schedule = {
        {ScheduleKind::oneForwardOneBackward, ScheduleKind::gpipe}};
    EXPECT_GT(compare(drawn), 0);
  }
}

TEST(Relaxation, BoundsParametersWithoutGradients) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    Case drawn = drawCase(seed);
    drawn.options.pp = {{1}};
    drawn.options.globalBatch = 64;
    drawn.options.microBatch = 1;
    drawn.model.segments[1].accumulations.clear();
    EXPECT_GT(compare(drawn), 0);
  }
}

// The weight is sliced over the tensor axis before its all-gather.
TEST(Relaxation, BoundsParametersPinnedReplicated) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    Case drawn = drawCase(seed);
    drawn.options.devices = 4;
    drawn.options.tp = 2;
    drawn.options.pp = {{1}};
    drawn.options.zeroStage = {{3}};
    Pins pins;
    for (const SegmentGraph &segment : drawn.model.segments)
      pins.ops.emplace_back(segment.ops.size());
    pins.parameters.assign(drawn.model.parameters.size(),
                           std::vector<std::string>{"", ""});
    drawn.options.pins = &pins;
    EXPECT_GT(compare(drawn), 0);
  }
}

// A table of learned positions has positions as rows, which cp splits.
TEST(Relaxation, BoundsRowsSplitAsPositions) {
  for (int zero : {0, 1, 2, 3})
    for (unsigned seed = 0; seed < 4; ++seed) {
      SCOPED_TRACE(testing::Message() << "zero " << zero << " seed " << seed);
      Case drawn = drawCase(seed);
      drawn.options.pp = {{1}};
      drawn.options.cp = {{2}};
      drawn.options.tp = 1;
      drawn.options.devices = 2;
      drawn.options.zeroStage = {{zero}};
      for (SegmentGraph &segment : drawn.model.segments)
        for (Op &op : segment.ops)
          if (op.factors.size() == 4) {
            op.factors[1].divisible = false;
            op.factors[2].split = Split::sequence;
          }
      for (Parameter &parameter : drawn.model.parameters)
        parameter.splits[0] = Split::sequence;
      EXPECT_GT(compare(drawn), 0);
    }
}

// The extrapolation from the first micro-batches is close to the simulation of
// all of them, also where overlapped messages give the pipeline a period of
// several micro-batches.
TEST(Step, IsExtrapolatedByFullPeriods) {
  std::mt19937 random(1);
  auto between = [&](double least, double most) {
    return Seconds{least + (most - least) *
                               static_cast<double>(random() % 10000) / 10000.0};
  };
  for (double sends : {0.0, 0.1, 0.5, 2.0})
    for (int round = 0; round < 100; ++round) {
      StepProblem problem;
      int stages = 2 + static_cast<int>(random() % 3);
      problem.shape = {round % 2 == 0 ? ScheduleKind::oneForwardOneBackward
                                      : ScheduleKind::zeroBubble,
                       stages, 1, 240};
      problem.overlap = {true, false, false, false, false, false};
      for (int stage = 0; stage < stages; ++stage) {
        ChunkTimes chunk;
        SliceTimes slice;
        slice.forward = between(0.9, 1.1);
        slice.backward = between(1.8, 2.2);
        slice.weightGradient = between(0.7, 1.1);
        chunk.slices.push_back(slice);
        chunk.sendForward = between(0.0, sends);
        chunk.sendBackward = between(0.0, sends);
        problem.stages.push_back({{chunk}, {}});
      }
      double simulated = stepSeconds(problem, scheduleOf(problem.shape)).value;
      EXPECT_NEAR(stepSecondsOf(problem).value, simulated, 0.003 * simulated)
          << sends << ' ' << round;
    }
}

} // namespace
} // namespace mtplan::planner
