//===- batched_updates_test.cpp - Plans with multi-tensor updates ---------===//
//
// Batches are logged by the name of their kernel.
//
//===----------------------------------------------------------------------===//

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/executable/batching_backend.h"
#include "tests/runtime/plan/two_replicas.h"

namespace mtplan {
namespace {

using namespace runtime;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

/// Runs the kernels of a batch in reverse order.
class ReversedUpdates : public LoggedBatch {
public:
  ReversedUpdates(Backend &backend, const std::vector<FixedRun> &theRuns)
      : runs(theRuns) {
    for (const FixedRun &run : runs)
      kernels.push_back(backend.prepare(run.spec));
  }

private:
  void runBatch(const Invocation &call) override {
    for (std::size_t i = runs.size(); i-- > 0;)
      kernels[i]->run(runs[i].with(call.step));
  }

  const std::vector<FixedRun> runs;
  std::vector<std::unique_ptr<Kernel>> kernels;
};

class UpdateBackend : public BatchingBackend {
public:
  std::unique_ptr<Kernel>
  prepareTogether(const std::vector<FixedRun> &runs) override {
    if (runs.empty())
      return nullptr;
    batchLog().add(runs[0].spec.kernel, runs.size());
    return std::make_unique<ReversedUpdates>(*kernels, runs);
  }
};

Plan planOf(const std::vector<std::string> &flags) {
  return examplePlan("tiny-gpt2", flags);
}

/// Runs the plan without batches of updates and with them, and compares all
/// results.
void expectSameBits(const Plan &plan) {
  mtplan::expectSameBits(plan,
                         [] { return std::make_unique<UpdateBackend>(); });
}

/// Returns the program that updates the layers.
Program &ofLayers(Plan &plan) {
  Stage &stage = plan.stages.front();
  return stage.programs[static_cast<std::size_t>(stage.apply[1].program)];
}

/// Returns a batch of the instructions from `first` up to `end`.
Batch batchOf(int first, int end) {
  Batch batch;
  batch.instructions.resize(static_cast<std::size_t>(end - first));
  std::iota(batch.instructions.begin(), batch.instructions.end(), first);
  return batch;
}

/// Makes the layers' program one batch over all layers and expects that the
/// check rejects the batch.
void expectNoBatchOfAll(Plan plan, const std::string &why) {
  Program &layers = ofLayers(plan);
  layers.batches = {batchOf(0, static_cast<int>(layers.instructions.size()))};
  layers.batches[0].ofAllCopies = true;
  EXPECT_THAT(batchFaultsOf(plan), ElementsAre(HasSubstr(why)));
}

// Two embedding tables are updated first, then sixteen parameters in each of
// two layers, then the weight and bias of the last norm.
TEST(BatchedUpdates, AllLayersFormOneBatch) {
  Plan plan = planOf({"--gpus", "1"});
  ASSERT_EQ(plan.stages.front().apply[1].count, 2);
  ASSERT_THAT(ofLayers(plan).batches, SizeIs(1));
  EXPECT_TRUE(ofLayers(plan).batches[0].ofAllCopies);
  expectSameBits(plan);
  EXPECT_THAT(batchLog().take("adamw"), ElementsAre(2, 32, 2));
  EXPECT_THAT(batchLog().take("square_sum"), ElementsAre(36));
}

TEST(BatchedUpdates, EveryRankHasBatches) {
  expectSameBits(planOf(
      {"--gpus", "2", "--dp", "2", "--zero", "3", "--hardware", "dgx-h100"}));
  EXPECT_THAT(batchLog().take("adamw"), SizeIs(6));
}

// A layer's shards are ready before its first update, and its all-gathers
// follow its last update.
TEST(BatchedUpdates, ZeroOneShardsAreBatched) {
  const Plan plan = planOf({"--gpus", "2", "--dp", "2", "--zero", "1"});
  expectSameBits(plan);
  EXPECT_THAT(batchLog().take("adamw"),
              UnorderedElementsAre(2, 2, 16, 16, 16, 16, 2, 2));
}

TEST(BatchedUpdates, HostUpdatesAreNotBatched) {
  expectSameBits(planOf(
      {"--gpus", "1", "--offload", "optimizer", "--hardware", "dgx-h100"}));
  EXPECT_THAT(batchLog().take("adamw"), IsEmpty());
}

TEST(BatchedUpdates, OnlyBatchesOfThePlanRun) {
  Plan plan = planOf({"--gpus", "1"});
  Program &layers = ofLayers(plan);
  ASSERT_THAT(layers.instructions, SizeIs(16));
  layers.batches = {batchOf(0, 16)};
  EXPECT_THAT(batchFaultsOf(plan), IsEmpty());
  expectSameBits(plan);
  EXPECT_THAT(batchLog().take("adamw"), ElementsAre(2, 16, 16, 2));
  layers.batches = {batchOf(1, 7), batchOf(7, 16)};
  EXPECT_THAT(batchFaultsOf(plan), IsEmpty());
  expectSameBits(plan);
  EXPECT_THAT(batchLog().take("adamw"), ElementsAre(2, 6, 6, 9, 9, 2));
  for (Program &program : plan.stages.front().programs)
    program.batches.clear();
  expectSameBits(plan);
  EXPECT_THAT(batchLog().take("adamw"), IsEmpty());
}

// Each layer has one batch before the copy and one after it.
TEST(BatchedUpdates, OtherKernelEndsABatch) {
  Plan plan = planOf({"--gpus", "1"});
  std::vector<Instruction> &all = ofLayers(plan).instructions;
  ASSERT_THAT(all, SizeIs(16));
  Instruction again = all[4];
  again.what = KernelCall{"copy", {}};
  again.inputs = again.outputs = {all[4].outputs[0]};
  all.insert(all.begin() + 5, again);
  expectNoBatchOfAll(plan, "needs kernels of one name");
  ofLayers(plan).batches = {batchOf(0, 5), batchOf(6, 17)};
  EXPECT_THAT(batchFaultsOf(plan), IsEmpty());
  expectSameBits(plan);
  EXPECT_THAT(batchLog().take("adamw"), ElementsAre(2, 5, 5, 11, 11, 2));
  EXPECT_THAT(batchLog().take("copy"), IsEmpty());
}

TEST(BatchedUpdates, OtherStreamEndsABatch) {
  Plan plan = planOf({"--gpus", "1"});
  std::vector<Instruction> &all = ofLayers(plan).instructions;
  ASSERT_THAT(all, SizeIs(16));
  plan.streams.push_back("beside");
  const auto beside = static_cast<int>(plan.streams.size()) - 1;
  for (std::size_t i = 10; i < all.size(); ++i)
    all[i].stream = beside;
  ofLayers(plan).batches = {batchOf(0, 11)};
  EXPECT_THAT(batchFaultsOf(plan),
              ElementsAre(HasSubstr("is on several streams")));
  ofLayers(plan).batches = {batchOf(0, 10), batchOf(10, 16)};
  EXPECT_THAT(batchFaultsOf(plan), IsEmpty());
  expectSameBits(plan);
  EXPECT_THAT(batchLog().take("adamw"), ElementsAre(2, 10, 10, 6, 6, 2));
}

TEST(BatchedUpdates, WaitEndsABatch) {
  Plan plan = planOf({"--gpus", "1"});
  ofLayers(plan).instructions[12].waits = {3};
  expectNoBatchOfAll(plan, "waits at instruction 12; only the first may wait");
  ofLayers(plan).batches = {batchOf(0, 12), batchOf(12, 16)};
  EXPECT_THAT(batchFaultsOf(plan), IsEmpty());
  expectSameBits(plan);
  EXPECT_THAT(batchLog().take("adamw"), ElementsAre(2, 12, 12, 4, 4, 2));
}

TEST(BatchedUpdates, TwoUpdatesOfOneParameterAreNotBatched) {
  Plan plan = planOf({"--gpus", "1"});
  std::vector<Instruction> &all = ofLayers(plan).instructions;
  all.push_back(all.front());
  expectNoBatchOfAll(plan, "has an instruction that writes what another reads");
  ofLayers(plan).batches = {batchOf(0, 16)};
  EXPECT_THAT(batchFaultsOf(plan), IsEmpty());
  expectSameBits(plan);
  EXPECT_THAT(batchLog().take("adamw"), ElementsAre(2, 16, 16, 2));
  ofLayers(plan).batches.clear();
  expectSameBits(plan);
  EXPECT_THAT(batchLog().take("adamw"), ElementsAre(2, 2));
}

TEST(BatchedUpdates, ProgramThatRunsTwiceIsNotBatched) {
  Plan plan = planOf({"--gpus", "1"});
  Stage &stage = plan.stages.front();
  stage.apply[1].count = 1;
  stage.apply.push_back(stage.apply[1]);
  stage.apply.back().first = 1;
  expectNoBatchOfAll(plan, "which does not run by one entry of /apply alone");
  ofLayers(plan).batches.clear();
  expectSameBits(plan);
  EXPECT_THAT(batchLog().take("adamw"), ElementsAre(2, 2));
}

// The trace has every update; the first of a batch has the time of the batch.
TEST(BatchedUpdates, BatchRunsAtItsFirstUpdate) {
  const Plan plan = planOf({"--gpus", "1"});
  const Stage &stage = plan.stages.front();
  std::vector<InstructionRun> trace;
  std::vector<double> ran; ///< when each batch runs, in clock marks
  runOnThreads(1, {}, [&](World &world) {
    UpdateBackend backend;
    onRun() = [&] { ran.push_back(backend.order.now()); };
    RankExecutor rank(plan, world, backend);
    DrawnData data = drawnDataOf(plan, 1, 1);
    StepInput input;
    input.data = &data;
    input.isTimed = true;
    input.trace = &trace;
    rank.step(input);
  });
  onRun() = nullptr;
  std::vector<std::size_t> firsts; // without the norm's batch
  for (std::size_t i = 0; i < trace.size(); ++i)
    for (const ScheduleEntry &entry : stage.apply)
      if (trace[i].program == entry.program && trace[i].instruction == 0 &&
          trace[i].copy == 0)
        firsts.push_back(i);
  ASSERT_THAT(firsts, SizeIs(3));
  // The batch of squared sums runs first, then the three batches of updates,
  // each between two clock marks.
  ASSERT_THAT(ran, SizeIs(4));
  EXPECT_EQ(ran[1] - ran[0], 2.0);
  for (std::size_t i = 1; i < 3; ++i)
    EXPECT_NEAR(trace[firsts[i]].start - trace[firsts[0]].start,
                ran[i + 1] - ran[1], 1e-6);
  EXPECT_EQ(trace.size(), firsts[2] + 2);
  EXPECT_EQ(firsts[2] - firsts[1], 32U);
}

} // namespace
} // namespace mtplan
