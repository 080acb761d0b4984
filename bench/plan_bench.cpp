//===- plan_bench.cpp - The whole plan, in process ------------------------===//
//
// What a person waits for when the command plans: reading the model and the
// machine, differentiating, searching every mesh and micro-batch. Recorded
// figures are in bench/results.
//
//===----------------------------------------------------------------------===//

#include <benchmark/benchmark.h>

#include "tools/driver/pipeline.h"

namespace mtplan::tools {
namespace {

PlanRequest requestOf(const char *model, const char *hardware, int gpus) {
  PlanRequest request;
  request.model = std::string(MTPLAN_SOURCE_DIR "/examples/") + model;
  request.hardware = hardware;
  request.gpus = gpus;
  request.splits = defaultSplits();
  return request;
}

void planWhole(benchmark::State &state, const char *model, const char *hardware,
               int gpus) {
  PlanRequest request = requestOf(model, hardware, gpus);
  double candidates = 0.0, optimal = 0.0;
  for (auto _ : state) {
    PlanOutcome outcome = plan(request);
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

// Everything that may be chosen left open, traffic beside compute.
void planOpen(benchmark::State &state, const char *model, const char *hardware,
              int gpus, int batch) {
  PlanRequest request = requestOf(model, hardware, gpus);
  request.pp = request.cp = request.virtualStages = request.zeroStage = {};
  request.schedule = {};
  request.recompute = {};
  request.overlaps = planner::Overlaps{};
  request.globalBatch = batch;
  request.top = 1;
  double candidates = 0.0, gap = 0.0;
  for (auto _ : state) {
    PlanOutcome outcome = plan(request);
    if (!outcome.best())
      return state.SkipWithError("no plan");
    candidates = outcome.result.candidates;
    gap = outcome.best()->time.step / outcome.result.lowerBound - 1;
  }
  state.counters["candidates"] = candidates;
  state.counters["gap"] = gap; ///< of the bound, relative
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

} // namespace
} // namespace mtplan::tools
