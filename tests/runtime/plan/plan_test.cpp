//===- plan_test.cpp - Plans of real programs -------------------*- C++ -*-===//

#include <gtest/gtest.h>

#include "runtime/plan/plan.h"

using namespace mtplan::runtime;

namespace {

// Returns a plan of two ranks, each with two rows of a [4][6] weight w. The
// product y = x w is a sum over both ranks, reduced on a second stream.
Plan rowSplitProduct() {
  Plan plan;
  plan.model = "row split";
  plan.ranks = 2;
  plan.mesh = {{"tp", 2}};
  plan.groups = {{.name = "tp", .communicators = {{0, 1}}}};
  plan.streams = {"compute", "tensor"};

  Stage stage;
  stage.ranks = {0, 1};
  stage.arenas = {{MemoryClass::parameters, 256},
                  {MemoryClass::activations, 512}};
  stage.buffers = {{.name = "w", .arena = 0, .offset = 0, .size = 2 * 6 * 4},
                   {.name = "x", .arena = 1, .offset = 0, .size = 3 * 2 * 4},
                   {.name = "y", .arena = 1, .offset = 256, .size = 3 * 6 * 4}};
  auto tensor = [](int buffer, std::vector<std::int64_t> shape) {
    Tensor made;
    made.buffer = buffer;
    made.shape = std::move(shape);
    return made;
  };
  const Tensor w = tensor(0, {2, 6}), x = tensor(1, {3, 2}),
               y = tensor(2, {3, 6});
  Program forward{"fc.forward", {}};
  forward.instructions = {
      {.label = "fc",
       .what = KernelCall{"einsum", {{"equation", "si,io->so"}}},
       .inputs = {x, w},
       .outputs = {y},
       .stream = 0,
       .waits = {}},
      {.label = "fc",
       .what = Collective{.kind = CollectiveKind::allReduce, .group = 0},
       .inputs = {y},
       .outputs = {y},
       .stream = 1,
       .waits = {0}}};
  stage.programs = {forward};
  stage.schedule = {{.program = 0, .microBatch = 0}};
  plan.stages = {stage};
  return plan;
}

TEST(Plan, HoldsARowSplitProduct) {
  const Plan plan = rowSplitProduct();
  EXPECT_EQ(plan.version, kPlanVersion);
  const Stage &stage = plan.stages.at(0);
  const Program &program =
      stage.programs.at(static_cast<std::size_t>(stage.schedule.at(0).program));
  const auto *product =
      std::get_if<KernelCall>(&program.instructions.at(0).what);
  ASSERT_TRUE(product);
  EXPECT_EQ(std::get<std::string>(product->settings.at(0).value), "si,io->so");
  const auto *join = std::get_if<Collective>(&program.instructions.at(1).what);
  ASSERT_TRUE(join);
  EXPECT_EQ(join->reduction, Reduction::sum);
  EXPECT_EQ(plan.groups.at(static_cast<std::size_t>(join->group)).communicators,
            (std::vector<std::vector<int>>{{0, 1}}));
}

TEST(Plan, DefaultsAreOneRankOneMicroBatch) {
  const Plan plan;
  EXPECT_EQ(plan.ranks, 1);
  EXPECT_EQ(plan.microBatches, 1);
  const Buffer buffer;
  EXPECT_EQ(buffer.slots, 1);
  EXPECT_EQ(buffer.offset % kAlignment, 0);
}

} // namespace
