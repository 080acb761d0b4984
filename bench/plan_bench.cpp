//===- plan_bench.cpp - Searching, simulating and storing plans -----------===//
//
// planWhole and planOpen measure all work of `mtplan`: reading the model and
// the machine, differentiating, and searching every mesh and micro-batch.
// Recorded figures are in bench/results.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <random>

#include <benchmark/benchmark.h>

#include "planner/simulate/step.h"
#include "runtime/plan/plan_check.h"
#include "runtime/plan/plan_json.h"
#include "tests/runtime/plan/pipeline_plan.h"
#include "tools/driver/pipeline.h"

namespace mtplan {
namespace {

//===----------------------------------------------------------------------===//
// Planning, in process
//===----------------------------------------------------------------------===//

tools::PlanRequest requestOf(const char *model, const char *hardware,
                             int gpus) {
  tools::PlanRequest request;
  request.model = std::string(MTPLAN_SOURCE_DIR "/examples/") + model;
  request.hardware = hardware;
  request.gpus = gpus;
  request.splits = tools::allSplits();
  return request;
}

void planWhole(benchmark::State &state, const char *model, const char *hardware,
               int gpus) {
  tools::PlanRequest request = requestOf(model, hardware, gpus);
  double candidates = 0.0, optimal = 0.0;
  for (auto _ : state) {
    tools::PlanOutcome outcome = plan(request);
    if (!outcome.best())
      return state.SkipWithError("no plan");
    candidates = outcome.result.candidates;
    optimal = outcome.result.optimal;
  }
  state.counters["candidates"] = candidates;
  state.counters["optimal"] = optimal;
}

BENCHMARK_CAPTURE(planWhole, gpt2_8_3b_on_8, "gpt2-8.3b.json", "dgx-2h", 8)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(planWhole, gpt2_8_3b_on_8_h100, "gpt2-8.3b.json", "dgx-h100",
                  8)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(planWhole, gpt3_175b_on_1024, "gpt3-175b.json",
                  "dgx-a100-80g", 1024)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(planWhole, llama_3_70b_on_64, "llama-3-70b.json", "dgx-h100",
                  64)
    ->Unit(benchmark::kMillisecond);

// Leaves pp, cp, virtual stages, ZeRO, schedule and recomputation to the
// search, too, and overlaps communication with compute.
void planOpen(benchmark::State &state, const char *model, const char *hardware,
              int gpus, int batch) {
  tools::PlanRequest request = requestOf(model, hardware, gpus);
  request.pp = request.cp = request.virtualStages = request.zeroStage = {};
  request.schedule = {};
  request.recompute = {};
  request.overlaps = planner::Overlaps{};
  request.globalBatch = batch;
  request.top = 1;
  double candidates = 0.0, gap = 0.0;
  for (auto _ : state) {
    tools::PlanOutcome outcome = plan(request);
    if (!outcome.best())
      return state.SkipWithError("no plan");
    candidates = outcome.result.candidates;
    gap = outcome.best()->time.step / outcome.result.lowerBound - 1;
  }
  state.counters["candidates"] = candidates;
  state.counters["gap"] = gap; ///< step time / lower bound - 1
}

BENCHMARK_CAPTURE(planOpen, gpt2_8_3b_on_8, "gpt2-8.3b.json", "dgx-2h", 8, 512)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(planOpen, gpt3_175b_on_64, "gpt3-175b.json", "dgx-a100-80g",
                  64, 1536)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(planOpen, gpt3_175b_on_1024, "gpt3-175b.json", "dgx-a100-80g",
                  1024, 1536)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(planOpen, llama_3_405b_on_16384, "llama-3-405b.json",
                  "dgx-h100", 16384, 2048)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

//===----------------------------------------------------------------------===//
// The event simulator and the step
//===----------------------------------------------------------------------===//

/// Returns n tasks on 64 streams; each has up to two predecessors. If `links`
/// is not 0, every second task uses one of `links` shared links.
planner::TaskGraph randomTasks(int n, int links) {
  std::mt19937_64 random(4);
  planner::TaskGraph graph;
  graph.reserve(n);
  auto earlier = [&](int task) {
    auto reach = static_cast<unsigned>(std::min(task, 500));
    return task > 0 ? task - 1 - static_cast<int>(random() % reach) : -1;
  };
  for (int task = 0; task < n; ++task) {
    int a = earlier(task), b = earlier(task);
    int link = links > 0 && task % 2 == 0
                   ? static_cast<int>(random() % static_cast<unsigned>(links))
                   : planner::kNoLink;
    graph.add(static_cast<int>(random() % 64),
              {static_cast<double>(1 + random() % 1000)}, {a, b}, link);
  }
  return graph;
}

void timeline(benchmark::State &state, int links) {
  planner::TaskGraph graph = randomTasks(100000, links);
  planner::Timeline result;
  for (auto _ : state)
    timelineOf(graph, result);
  state.SetItemsProcessed(state.iterations() * graph.size());
}
BENCHMARK_CAPTURE(timeline, own_links, 0)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(timeline, shared_links, 8)->Unit(benchmark::kMillisecond);

void step(benchmark::State &state, planner::ScheduleShape shape, int layers) {
  planner::StepProblem problem;
  problem.shape = shape;
  planner::ChunkTimes chunk;
  chunk.slices = {{layers, {1e-3}, {2e-3}, {1e-3}, {1e-3}, {1e-3}}};
  chunk.sendForward = chunk.sendBackward = {1e-4};
  planner::StageTimes stage;
  stage.chunks.assign(static_cast<std::size_t>(shape.chunks), chunk);
  stage.update = {1e-3};
  problem.stages.assign(static_cast<std::size_t>(shape.stages), stage);
  planner::Schedule schedule = scheduleOf(shape);
  for (auto _ : state)
    benchmark::DoNotOptimize(stepSeconds(problem, schedule));
}
BENCHMARK_CAPTURE(step, gpt_1f1b_8_stages,
                  planner::ScheduleShape{
                      planner::ScheduleKind::oneForwardOneBackward, 8, 1, 64},
                  12)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(step, interleaved_16_stages_4_chunks,
                  planner::ScheduleShape{planner::ScheduleKind::interleaved, 16,
                                         4, 64},
                  2)
    ->Unit(benchmark::kMicrosecond);

//===----------------------------------------------------------------------===//
// Executable plans of 1,024 ranks
//
// The plan has the shapes of GPT-3 175B, 16 stages of 64 ranks, 192
// micro-batches per step and 60 kernels per layer. `bytes` is the size of the
// file, `entries` counts the entries of all schedules, and `runs` counts the
// instructions that all stages run in a step.
//===----------------------------------------------------------------------===//

const runtime::Plan &largePlan() {
  static const runtime::Plan plan =
      runtime::PipelinePlan({.pp = 16,
                             .dp = 8,
                             .tp = 8,
                             .layers = 6,
                             .microBatches = 192,
                             .chain = 60,
                             .samples = 1,
                             .positions = 2048,
                             .hidden = 12288,
                             .zero = true,
                             .forwardsFirst = false,
                             .type = runtime::ElementType::bf16})
          .make();
  return plan;
}

void count(benchmark::State &state, std::size_t bytes) {
  double entries = 0, runs = 0;
  for (const runtime::Stage &stage : largePlan().stages)
    for (const auto *list : {&stage.schedule, &stage.reduce, &stage.apply})
      for (const runtime::ScheduleEntry &entry : *list) {
        entries += 1;
        runs += static_cast<double>(entry.count) *
                static_cast<double>(
                    stage.programs[static_cast<std::size_t>(entry.program)]
                        .instructions.size());
      }
  state.counters["bytes"] = static_cast<double>(bytes);
  state.counters["entries"] = entries;
  state.counters["runs"] = runs;
}

void executablePlanWrite(benchmark::State &state) {
  std::size_t bytes = 0;
  for (auto _ : state)
    bytes = planText(largePlan()).size();
  count(state, bytes);
}

void executablePlanRead(benchmark::State &state) {
  const std::string text = planText(largePlan());
  for (auto _ : state)
    benchmark::DoNotOptimize(runtime::parsePlan(text));
  count(state, text.size());
}

void executablePlanCheck(benchmark::State &state) {
  const std::size_t bytes = planText(largePlan()).size();
  for (auto _ : state)
    if (!checkPlan(largePlan()).empty())
      return state.SkipWithError("a fault");
  count(state, bytes);
}

BENCHMARK(executablePlanWrite)->Unit(benchmark::kMillisecond);
BENCHMARK(executablePlanRead)->Unit(benchmark::kMillisecond);
BENCHMARK(executablePlanCheck)->Unit(benchmark::kMillisecond);

} // namespace
} // namespace mtplan
