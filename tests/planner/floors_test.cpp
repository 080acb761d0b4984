//===- floors_test.cpp - Bounds stay below every plan's step --------------===//

#include <numeric>

#include <gtest/gtest.h>

#include "planner/search/bounds.h"
#include "planner/search/enumerate.h"
#include "planner/search/floors.h"
#include "tests/planner/space_case.h"

namespace mtplan::planner {
namespace {

// Holds every bound of every candidate to the step of the plan that is found;
// returns how many were compared.
int compare(const Case &drawn) {
  int compared = 0;
  Bounds bounds(drawn.model, drawn.machine, drawn.options);
  Floors floors(drawn.model, drawn.machine, drawn.options);
  StageCache cache;
  for (const Parallelism &how :
       wholeSpace(drawn.model, drawn.machine, drawn.options)) {
    Rejection rejection;
    std::optional<PlannedCandidate> one =
        solveCandidate(withBatch(drawn.model, how.microBatch * how.dp),
                       drawn.options, drawn.machine, how, {}, cache, rejection);
    if (!one)
      continue;
    SCOPED_TRACE(testing::Message()
                 << "dp " << how.dp << " tp " << how.tp << " pp " << how.pp
                 << " cp " << how.cp << " v " << how.virtualStages << ' '
                 << nameOf(how.schedule) << " micro-batch " << how.microBatch
                 << " zero " << how.zeroStage << " of " << how.zeroRanks
                 << " ep " << how.ep << ' ' << nameOf(how.recompute) << ' '
                 << how.recomputeLayers << " layers "
                 << testing::PrintToString(how.layers));
    const double most = one->time.step.value * (1 + 1e-9);
    EXPECT_LE(bounds.memory(how).value, one->memory.total().value * (1 + 1e-9));
    if (isCutAnyhow(how, drawn.options)) {
      EXPECT_LE(bounds.memoryOfAnyCut(how).value,
                one->memory.total().value * (1 + 1e-9));
    }
    if (one->fits) {
      EXPECT_LE(one->lowerBound.value, most);
    }
    Parallelism once = withCount(how, 0);
    floors.prepare({how, once});
    Floors::StepFloor floor = floors.stepOf(how);
    EXPECT_LE(floor.quick.value, most);
    if (floor.problem) {
      EXPECT_LE(stepSecondsOf(*floor.problem).value, most);
    }
    EXPECT_LE(pipelineFloor(floors.microBatchOf(how), how).value, most);
    if (how.pp > 1 && how.virtualStages == 1) {
      EXPECT_LE(cutBound(how, floors.layerTimes(how)).value, most);
    }
    Seconds again = bounds.compute(how) - bounds.compute(once);
    EXPECT_LE(pipelineFloor(floors.microBatchOf(once) + again, how).value,
              most);
    ++compared;
  }
  return compared;
}

// Experts over replicas, some layers that recompute, uneven cuts, whole copies
// of split state.
TEST(Floors, HoldInTheWholeSpace) {
  int compared = 0, cut = 0, experts = 0, hybrid = 0, counted = 0;
  for (unsigned seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Case drawn = drawCase(seed);
    openEverything(drawn, seed % 4 == 3 ? 128.0 : 16.0);
    compared += compare(drawn);
    for (const Parallelism &how :
         wholeSpace(drawn.model, drawn.machine, drawn.options)) {
      cut += how.pp > 1 && how.layers.back() > how.layers.front();
      experts += how.ep > 1;
      hybrid += how.zeroStage > 0 && how.zeroRanks < how.dp;
      counted += how.recompute == Recompute::full && how.recomputeLayers > 0;
    }
  }
  EXPECT_GT(compared, 1000);
  EXPECT_GT(cut, 50);
  EXPECT_GT(experts, 50);
  EXPECT_GT(hybrid, 50);
  EXPECT_GT(counted, 50);
}

// Any part of the traffic beside compute, with software that taxes it.
TEST(Floors, HoldWhateverOverlaps) {
  Software taxed = defaultSoftware();
  taxed.overlap.tax = 0.3;
  taxed.overlap.taxOneRankPerNode = 0.1;
  taxed.scattersSends = true;
  taxed.parameters.perSharer = Seconds{1e-7};
  taxed.parameters.shardCopies = 3;
  taxed.parameters.bucket = Bytes{1000};
  taxed.joins.messages = true;
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
      taxed.joins.devices = {drawn.machine.device.name};
      for (Parameter &parameter : drawn.model.parameters)
        parameter.ofSegment = 0.3;
      compared += compare(drawn);
    }
  EXPECT_GT(compared, 1000);
}

// Any part of what the host does beside the device, and traffic between
// replicas beside compute or not.
TEST(Floors, HoldWhatTheHostDoes) {
  int compared = 0;
  Software sweeping = defaultSoftware();
  sweeping.parameters.sweep = 60; // which the device goes on with meanwhile
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

// Of eight chunks one is reduced while the others' gradients go down, are used
// and come up, 2 ns each of every weight: together that is twice the step.
TEST(Floors, HoldWhereTheHostIsAPipeline) {
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

// A parameter that two segments of one stage share needs no sum between stages.
TEST(Floors, TiedWithinAStage) {
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

TEST(Floors, ParametersWithoutGradients) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    Case drawn = drawCase(seed);
    drawn.options.pp = {{1}};
    drawn.options.globalBatch = 64;
    drawn.options.microBatch = 1;
    drawn.model.segments[1].accumulations.clear();
    EXPECT_GT(compare(drawn), 0);
  }
}

// Sliced over the tensor axis before it is gathered.
TEST(Floors, ParametersPinnedWhole) {
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

// As a table of learned positions: rows are positions, which cp splits.
TEST(Floors, RowsThatAreSplitAsPositions) {
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

// What is extrapolated from the first micro-batches of many is near what all of
// them take, also where messages beside compute make the pipeline repeat itself
// only after several.
TEST(Step, IsExtrapolatedByWholePeriods) {
  std::mt19937 random(1);
  auto between = [&](double least, double most) {
    return Seconds{least + (most - least) *
                               static_cast<double>(random() % 10000) / 10000.0};
  };
  for (double sends : {0.0, 0.1, 0.5, 2.0})
    for (int round = 0; round < 100; ++round) {
      StepProblem problem;
      int stages = 2 + static_cast<int>(random() % 3);
      problem.shape = {ScheduleKind::oneForwardOneBackward, stages, 1, 240};
      problem.overlap = {true, false, false, false, false, false};
      for (int stage = 0; stage < stages; ++stage) {
        ChunkTimes chunk;
        SliceTimes slice;
        slice.forward = between(0.9, 1.1);
        slice.backward = between(1.8, 2.2);
        chunk.slices.push_back(slice);
        chunk.sendForward = between(0.0, sends);
        chunk.sendBackward = between(0.0, sends);
        problem.stages.push_back({{chunk}, {}, {}});
      }
      double whole = stepSeconds(problem, scheduleOf(problem.shape)).value;
      EXPECT_NEAR(stepSecondsOf(problem).value, whole, 0.003 * whole)
          << sends << ' ' << round;
    }
}

} // namespace
} // namespace mtplan::planner
