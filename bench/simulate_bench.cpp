//===- simulate_bench.cpp - The event simulator and the step --------------===//

#include <algorithm>
#include <random>

#include <benchmark/benchmark.h>

#include "planner/simulate/step.h"

namespace mtplan::planner {
namespace {

/// n tasks on 64 streams, each after two earlier ones.
TaskGraph randomTasks(int n, int links) {
  std::mt19937_64 random(4);
  TaskGraph graph;
  graph.reserve(n);
  auto earlier = [&](int task) {
    auto reach = static_cast<unsigned>(std::min(task, 500));
    return task > 0 ? task - 1 - static_cast<int>(random() % reach) : -1;
  };
  for (int task = 0; task < n; ++task) {
    int a = earlier(task), b = earlier(task);
    int link = links > 0 && task % 2 == 0
                   ? static_cast<int>(random() % static_cast<unsigned>(links))
                   : kNoLink;
    graph.add(static_cast<int>(random() % 64),
              {static_cast<double>(1 + random() % 1000)}, {a, b}, link);
  }
  return graph;
}

void timeline(benchmark::State &state, int links) {
  TaskGraph graph = randomTasks(100000, links);
  Timeline result;
  for (auto _ : state)
    timelineOf(graph, result);
  state.SetItemsProcessed(state.iterations() * graph.size());
}
BENCHMARK_CAPTURE(timeline, own_links, 0)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(timeline, shared_links, 8)->Unit(benchmark::kMillisecond);

void step(benchmark::State &state, ScheduleShape shape, int layers) {
  StepProblem problem;
  problem.shape = shape;
  ChunkTimes chunk;
  chunk.slices = {{layers, {1e-3}, {2e-3}, {1e-3}, {1e-3}, {1e-3}}};
  chunk.sendForward = chunk.sendBackward = {1e-4};
  StageTimes stage;
  stage.chunks.assign(static_cast<std::size_t>(shape.chunks), chunk);
  stage.update = {1e-3};
  problem.stages.assign(static_cast<std::size_t>(shape.stages), stage);
  Schedule schedule = scheduleOf(shape);
  for (auto _ : state)
    benchmark::DoNotOptimize(stepSeconds(problem, schedule));
}
BENCHMARK_CAPTURE(step, gpt_1f1b_8_stages,
                  ScheduleShape{ScheduleKind::oneForwardOneBackward, 8, 1, 64},
                  12)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(step, interleaved_16_stages_4_chunks,
                  ScheduleShape{ScheduleKind::interleaved, 16, 4, 64}, 2)
    ->Unit(benchmark::kMicrosecond);

} // namespace
} // namespace mtplan::planner
