//===- joined_updates_test.cpp - Updates that are one kernel --------------===//
//
// Plans on a backend that takes many updates together, and runs them backwards:
// nothing may depend on their order.
//
//===----------------------------------------------------------------------===//

#include <functional>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plan/plan_json.h"
#include "tests/executable/counting_queue.h"
#include "tests/executable/run_plan.h"
#include "tests/executable/run_process.h"

namespace mtplan {
namespace {

using namespace runtime;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

/// How many runs of a kernel were joined, of all ranks; whoever makes a backend
/// shares it.
class Log {
public:
  void add(const std::string &kernel, std::size_t runs) {
    std::scoped_lock lock(mutex);
    joined[kernel].push_back(runs);
  }
  std::vector<std::size_t> take(const std::string &kernel) {
    std::scoped_lock lock(mutex);
    return std::exchange(joined[kernel], {});
  }

private:
  std::mutex mutex;
  std::map<std::string, std::vector<std::size_t>> joined;
};

Log &log() {
  static Log all;
  return all;
}

/// Called when joined kernels run.
std::function<void()> &onRun() {
  static std::function<void()> call;
  return call;
}

class Backwards : public Kernel {
public:
  Backwards(Backend &backend, const std::vector<FixedRun> &theRuns)
      : runs(theRuns) {
    for (const FixedRun &run : runs)
      kernels.push_back(backend.prepare(run.spec));
  }
  void run(const Invocation &call) override {
    if (onRun())
      onRun()();
    for (std::size_t i = runs.size(); i-- > 0;)
      kernels[i]->run(runs[i].with(call.step));
  }

private:
  const std::vector<FixedRun> runs;
  std::vector<std::unique_ptr<Kernel>> kernels;
};

class JoiningBackend : public Backend {
public:
  Queue &queue() override { return order; }
  std::unique_ptr<Kernel> prepare(const KernelSpec &spec) override {
    return kernels->prepare(spec);
  }
  std::unique_ptr<Kernel>
  prepareTogether(const std::vector<FixedRun> &runs) override {
    if (runs.empty())
      return nullptr;
    log().add(runs[0].spec.kernel, runs.size());
    return std::make_unique<Backwards>(*kernels, runs);
  }

  Counting order;

private:
  const std::unique_ptr<Backend> kernels = makeCpuBackend(1);
};

std::unique_ptr<Backend> makeJoining() {
  return std::make_unique<JoiningBackend>();
}
std::unique_ptr<Backend> makePlain() { return makeCpuBackend(1); }

constexpr int kSteps = 2;

Plan planOf(const std::vector<std::string> &flags) {
  TestFolder folder;
  EXPECT_EQ(compileExample("tiny-gpt2", folder / "run", flags), "");
  return readPlanFile(folder / "run/plan.json");
}

// Runs both ways, and compares all that comes of it.
void expectSameBits(const Plan &plan) {
  ir::RunOptions options;
  const Gathered expected = runPlan(plan, options, makePlain, 0.0, kSteps);
  log().take("adamw");
  const Gathered ran = runPlan(plan, options, makeJoining, 0.0, kSteps);
  std::string worst;
  EXPECT_EQ(worstDifference(ran, expected, worst), 0.0) << worst;
  EXPECT_EQ(ran.gradientNorm, expected.gradientNorm);
}

/// The program that updates the layers.
Program &ofLayers(Plan &plan) {
  Stage &stage = plan.stages.front();
  return stage.programs[static_cast<std::size_t>(stage.apply[1].program)];
}

// Tables, then a layer's sixteen of both layers, then the last norm.
TEST(JoinedUpdates, AreThoseOfAllCopiesOfAProgram) {
  const Plan plan = planOf({"--gpus", "1"});
  ASSERT_EQ(plan.stages.front().apply[1].count, 2);
  expectSameBits(plan);
  EXPECT_THAT(log().take("adamw"), ElementsAre(2, 32, 2));
  EXPECT_THAT(log().take("square_sum"), ElementsAre(36));
}

TEST(JoinedUpdates, AreThoseOfEachRank) {
  expectSameBits(planOf(
      {"--gpus", "2", "--dp", "2", "--zero", "3", "--hardware", "dgx-h100"}));
  EXPECT_THAT(log().take("adamw"), SizeIs(6));
}

// Pieces are taken before all updates of a layer, and gathered behind them.
TEST(JoinedUpdates, AreThoseOfPieces) {
  const Plan plan = planOf({"--gpus", "2", "--dp", "2", "--zero", "1"});
  expectSameBits(plan);
  EXPECT_THAT(log().take("adamw"),
              UnorderedElementsAre(2, 2, 16, 16, 16, 16, 2, 2));
}

TEST(JoinedUpdates, AreNotTheHosts) {
  expectSameBits(planOf(
      {"--gpus", "1", "--offload", "optimizer", "--hardware", "dgx-h100"}));
  EXPECT_THAT(log().take("adamw"), IsEmpty());
}

// Copy by copy, on both sides of what stands between.
TEST(JoinedUpdates, EndWhereSomethingElseIs) {
  Plan plan = planOf({"--gpus", "1"});
  std::vector<Instruction> &all = ofLayers(plan).instructions;
  ASSERT_THAT(all, SizeIs(16));
  Instruction again = all[4];
  again.what = KernelCall{"copy", {}};
  again.inputs = again.outputs = {all[4].outputs[0]};
  all.insert(all.begin() + 5, again);
  expectSameBits(plan);
  EXPECT_THAT(log().take("adamw"), ElementsAre(2, 5, 5, 11, 11, 2));
  EXPECT_THAT(log().take("copy"), IsEmpty());
}

TEST(JoinedUpdates, EndAtAnotherStream) {
  Plan plan = planOf({"--gpus", "1"});
  plan.streams.push_back("beside");
  const auto beside = static_cast<int>(plan.streams.size()) - 1;
  std::vector<Instruction> &all = ofLayers(plan).instructions;
  for (std::size_t i = 10; i < all.size(); ++i)
    all[i].stream = beside;
  expectSameBits(plan);
  EXPECT_THAT(log().take("adamw"), ElementsAre(2, 10, 10, 6, 6, 2));
}

TEST(JoinedUpdates, EndAtOneThatWaits) {
  Plan plan = planOf({"--gpus", "1"});
  ofLayers(plan).instructions[12].waits = {3};
  expectSameBits(plan);
  EXPECT_THAT(log().take("adamw"), ElementsAre(2, 12, 12, 4, 4, 2));
}

TEST(JoinedUpdates, AreNotThoseOfOneParameter) {
  Plan plan = planOf({"--gpus", "1"});
  std::vector<Instruction> &all = ofLayers(plan).instructions;
  all.push_back(all.front());
  expectSameBits(plan);
  EXPECT_THAT(log().take("adamw"), ElementsAre(2, 2));
}

TEST(JoinedUpdates, AreNotThoseOfAProgramThatRunsTwice) {
  Plan plan = planOf({"--gpus", "1"});
  Stage &stage = plan.stages.front();
  stage.apply[1].count = 1;
  stage.apply.push_back(stage.apply[1]);
  stage.apply.back().first = 1;
  expectSameBits(plan);
  EXPECT_THAT(log().take("adamw"), ElementsAre(2, 2));
}

// Every run is in the trace; what is joined has its time in the first.
TEST(JoinedUpdates, RunWithTheFirst) {
  const Plan plan = planOf({"--gpus", "1"});
  const Stage &stage = plan.stages.front();
  std::vector<InstructionRun> trace;
  std::vector<double> ran; ///< since the first mark
  runOnThreads(1, {}, [&](World &world) {
    JoiningBackend backend;
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
  std::vector<std::size_t> firsts; // beside what is squared
  for (std::size_t i = 0; i < trace.size(); ++i)
    for (const ScheduleEntry &entry : stage.apply)
      if (trace[i].program == entry.program && trace[i].instruction == 0 &&
          trace[i].copy == 0)
        firsts.push_back(i);
  ASSERT_THAT(firsts, SizeIs(3));
  // The norm's squares and then these, each within its own marks.
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
