//===- overlapped_reductions_test.cpp - Reductions beside backward --------===//

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/verify/prove.h"
#include "runtime/plan/plan_check.h"
#include "runtime/plan/plan_json.h"
#include "runtime/plan/program_runs.h"
#include "tests/codegen/hand_streams.h"
#include "tests/executable/run_plan.h"
#include "tests/passes/verify/drawn_plan.h"
#include "tests/runtime/plan/pipeline_plan.h"
#include "tests/tools/planning.h"
#include "tools/driver/executable.h"

namespace mtplan {
namespace {

using namespace runtime;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

/// Returns "program: label label" per program with overlapped instructions.
std::vector<std::string> overlappedOf(const Stage &stage) {
  std::vector<std::string> all;
  for (const Program &program : stage.programs) {
    std::string line = program.name + ":";
    for (const Instruction &one : program.instructions)
      if (one.overlapped)
        line += " " + one.label;
    if (!line.ends_with(":"))
      all.push_back(line);
  }
  return all;
}

std::vector<std::string> reducedAfter(const Stage &stage) {
  std::vector<std::string> all;
  for (const ScheduleEntry &entry : stage.reduce)
    for (const Instruction &one :
         stage.programs[static_cast<std::size_t>(entry.program)].instructions)
      if (std::holds_alternative<Collective>(one.what))
        all.push_back(one.label);
  return all;
}

TEST(OverlappedReductions, FollowTheLastGradient) {
  Plan plan = twoReplicas();
  overlapByHand(plan.stages[0], "reduce", "fc.backward");
  writeStreamsAndWaits(plan);
  EXPECT_THAT(checkPlan(plan), IsEmpty());
  EXPECT_THAT(overlappedOf(plan.stages[0]),
              ElementsAre("fc.backward: fc.weight"));
  EXPECT_THAT(plan.stages[0].reduce, IsEmpty());
  EXPECT_EQ(plan.stages[0].programs.size(), 3U);
  EXPECT_THAT(plan.stages[0].programs[1].instructions[2].waits, ElementsAre(1));
  const Plan again = parsePlan(planText(plan));
  EXPECT_EQ(planText(again), planText(plan));
  EXPECT_TRUE(again.stages[0].programs[1].instructions[2].overlapped);
}

// The test adds a term to the gradient after the gradient's overlapped
// reduction, which would miss this term.
TEST(OverlappedReductions, AreRejectedWhereTheGradientIsAddedUpAgain) {
  Plan plan = twoReplicas();
  Stage &stage = plan.stages[0];
  const Instruction add = stage.programs[1].instructions[1];
  overlapByHand(stage, "reduce", "fc.backward");
  stage.programs[1].instructions.push_back(add);
  writeStreamsAndWaits(plan);
  stage.programs[1].instructions.back().waits.clear();
  EXPECT_THAT(checkPlan(plan), Not(IsEmpty()));
}

// Random plans cover pipelines, ZeRO, tied weights, recomputation and every
// schedule of all model families.
TEST(OverlappedReductions, OfRandomPlansPassThePlanCheck) {
  int moved = 0, left = 0;
  for (const passes::Family &family : passes::families()) {
    passes::Random random = passes::randomOf(family, 23);
    const int layers = planner::layersOf(passes::Step(family, 1, 1).graph);
    for (int i = 0; i < 4; ++i) {
      const passes::Drawn drawn =
          passes::draw(random, family.splits.contains("expert"), layers);
      SCOPED_TRACE(family.example + ": " + textOf(drawn));
      passes::DrawnStep made(family, drawn);
      const auto pair =
          passes::buildProofPair(*made.step.module, *made.planned);
      ASSERT_TRUE(pair);
      // compiled() also runs the plan check.
      const Plan plan = compiled(*pair->partitioned, drawn.config.schedule,
                                 drawn.microBatches, false, true);
      for (const Stage &stage : plan.stages) {
        moved += static_cast<int>(overlappedOf(stage).size());
        left += static_cast<int>(reducedAfter(stage).size());
      }
    }
  }
  EXPECT_GT(moved, 40);
  EXPECT_GT(left, 40);
}

Plan compiledExample(const std::string &model,
                     const std::function<void(tools::PlanRequest &)> &choose) {
  tools::PlanRequest request = tools::exampleRequest(model, 1);
  request.output = "run";
  request.overlaps.emplace().reduce = true;
  choose(request);
  const tools::PlanOutcome outcome = tools::planned(request);
  std::vector<std::string> errors;
  std::optional<Plan> plan =
      tools::executableOf(*outcome.problem, *outcome.best(), errors);
  if (!plan)
    throw std::runtime_error(testing::PrintToString(errors));
  EXPECT_THAT(checkPlan(*plan), IsEmpty());
  return std::move(*plan);
}

// A layer's reductions overlap the backward of the previous layer. The first of
// them waits for the last gradient, which makes waits of the others redundant.
TEST(OverlappedReductions, OfALayerWaitOnce) {
  const Plan plan =
      compiledExample("tiny-gpt2", [](tools::PlanRequest &request) {
        request.gpus = request.dp = 2;
      });
  const Stage &stage = plan.stages[0];
  EXPECT_THAT(
      overlappedOf(stage),
      ElementsAre("embed.backward: wpe.weight",
                  "h.backward: h.*.ln_1.bias h.*.ln_1.weight h.*.attn.q.weight "
                  "h.*.attn.q.bias h.*.attn.k.weight h.*.attn.k.bias "
                  "h.*.attn.v.weight h.*.attn.v.bias h.*.attn.proj.weight "
                  "h.*.attn.proj.bias h.*.ln_2.bias h.*.ln_2.weight "
                  "h.*.mlp.fc1.weight h.*.mlp.fc1.bias h.*.mlp.fc2.weight "
                  "h.*.mlp.fc2.bias",
                  "head.backward: ln_f.bias ln_f.weight"));
  // The head uses the embedding table wte.weight, too. The gradients of both
  // uses are added and reduced after backward.
  EXPECT_THAT(reducedAfter(stage), ElementsAre("wte.weight", "loss"));
  int waits = 0;
  for (const Program &program : stage.programs)
    if (program.name == "h.backward")
      for (const Instruction &one : program.instructions)
        waits += one.overlapped && !one.waits.empty() ? 1 : 0;
  EXPECT_EQ(waits, 1);
}

/// Holds the arena bytes that an overlapped reduce-scatter reads (`wholes`) and
/// writes (`pieces`), by layer.
struct Scattered {
  std::string label;
  std::vector<ArenaBytes> wholes, pieces;
};

std::vector<Scattered> scatteredOf(const Plan &plan) {
  std::vector<Scattered> all;
  const Stage &stage = plan.stages[0];
  for (const ScheduleEntry &entry : stage.schedule)
    for (const Instruction &one :
         stage.programs[static_cast<std::size_t>(entry.program)].instructions) {
      const auto *call = std::get_if<Collective>(&one.what);
      if (!one.overlapped || call->kind != CollectiveKind::reduceScatter ||
          !runsFor(entry.microBatch, one, plan.microBatches))
        continue;
      Scattered &made = all.emplace_back();
      made.label = one.label;
      for (int copy = 0; copy < entry.count; ++copy) {
        made.wholes.push_back(arenaBytesOf(stage, one.inputs[0], {copy, 0}));
        made.pieces.push_back(arenaBytesOf(stage, one.outputs[0], {copy, 0}));
      }
    }
  return all;
}

// A layer's gradient shard reuses the bytes of the next layer's full gradient;
// the last layer's shard overlaps no full gradient.
TEST(OverlappedReductions, ShardReusesTheNextLayersGradient) {
  const Plan plan =
      compiledExample("tiny-gpt2", [](tools::PlanRequest &request) {
        request.gpus = request.dp = 2;
        request.zeroStage = {{1}};
      });
  const std::vector<Scattered> all = scatteredOf(plan);
  EXPECT_EQ(all.size(), 19U); // as many reductions as without ZeRO
  int ofLayers = 0;
  for (const Scattered &one : all) {
    SCOPED_TRACE(one.label);
    ofLayers += one.label.starts_with("h.") ? 1 : 0;
    for (std::size_t copy = 0; copy + 1 < one.pieces.size(); ++copy)
      EXPECT_EQ(one.pieces[copy].begin, one.wholes[copy + 1].begin);
    for (const Scattered &other : all)
      for (const ArenaBytes &whole : other.wholes)
        EXPECT_FALSE(one.pieces.back().overlaps(whole)) << other.label;
  }
  EXPECT_EQ(ofLayers, 16);
  EXPECT_THAT(reducedAfter(plan.stages[0]), ElementsAre("wte.weight", "loss"));
}

// The reduce-scatters of gradients over dp overlap backward, and those over cp
// follow it.
TEST(OverlappedReductions, OverDpAndCpOverlapOnlyDp) {
  const Plan plan =
      compiledExample("tiny-llama", [](tools::PlanRequest &request) {
        request.gpus = 4;
        request.dp = 2;
        request.cp = {{2}};
        request.zeroStage = {{1}};
      });
  const Stage &stage = plan.stages[0];
  std::set<std::string> early, late;
  for (const Program &program : stage.programs)
    for (const Instruction &one : program.instructions)
      if (const auto *call = std::get_if<Collective>(&one.what);
          call && call->kind == CollectiveKind::reduceScatter)
        (one.overlapped ? early : late)
            .insert(plan.groups[static_cast<std::size_t>(call->group)].name);
  EXPECT_THAT(early, ElementsAre("dp"));
  EXPECT_THAT(late, ElementsAre("cp"));
}

// A shard may reuse the bytes of the next layer's gradient, which has been
// reduced, but not the bytes of the previous layer's gradient, which backward
// still writes.
TEST(OverlappedReductions, MayNotOverwriteAGradientStillToCome) {
  const int layers = 3;
  for (const bool isBehind : {true, false}) {
    SCOPED_TRACE(isBehind);
    PipelineSize size{.dp = 2, .layers = layers, .microBatches = 2};
    size.zero = true;
    Plan plan = PipelinePlan(size).make();
    Stage &stage = plan.stages[0];
    Instruction *scatter = nullptr;
    for (Program &program : stage.programs)
      if (program.name == "reduce h.*.weight")
        scatter = &program.instructions.back();
    ASSERT_TRUE(scatter);
    const Buffer whole =
        stage.buffers[static_cast<std::size_t>(scatter->inputs[0].buffer)];
    const int number = scatter->outputs[0].buffer;
    Buffer &piece = stage.buffers[static_cast<std::size_t>(number)];
    // PipelinePlan places the shards behind the gradients of all layers.
    ASSERT_EQ(piece.offset, whole.offset + layers * whole.entryStride);
    piece.entryStride = whole.entryStride;
    piece.offset = whole.offset;
    if (isBehind)
      piece.offset += piece.entryStride;
    else
      for (Program &program : stage.programs)
        for (Instruction &one : program.instructions)
          for (auto *some : {&one.inputs, &one.outputs})
            for (Tensor &tensor : *some)
              if (tensor.buffer == number)
                tensor.entry = layers - 1;
    overlapByHand(stage, "reduce h.*.weight", "h.backward");
    writeStreamsAndWaits(plan);
    EXPECT_EQ(std::ranges::any_of(checkPlan(plan),
                                  [](const std::string &fault) {
                                    return fault.find(
                                               "may still be under way") !=
                                           std::string::npos;
                                  }),
              !isBehind);
  }
}

} // namespace
} // namespace mtplan
