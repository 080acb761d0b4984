//===- executable_plan_bench.cpp - Executable plans of a large machine ----===//
//
// What the files of 1,024 ranks cost: GPT-3 175B's shapes on 16 stages of 64
// ranks, 192 micro-batches in flight one after another, 60 kernels a layer.
// `bytes` is the file's size, `entries` are those of all schedules, `runs` the
// instructions that all stages run in a step.
//
//===----------------------------------------------------------------------===//

#include <benchmark/benchmark.h>

#include "runtime/plan/plan_check.h"
#include "runtime/plan/plan_json.h"
#include "tests/runtime/plan/pipeline_plan.h"

namespace mtplan::runtime {
namespace {

const Plan &largePlan() {
  static const Plan plan = PipelinePlan({.pp = 16,
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
                                         .type = ElementType::bf16})
                               .make();
  return plan;
}

void count(benchmark::State &state, std::size_t bytes) {
  double entries = 0, runs = 0;
  for (const Stage &stage : largePlan().stages)
    for (const auto *list : {&stage.schedule, &stage.reduce, &stage.apply})
      for (const ScheduleEntry &entry : *list) {
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
    benchmark::DoNotOptimize(parsePlan(text));
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
} // namespace mtplan::runtime
