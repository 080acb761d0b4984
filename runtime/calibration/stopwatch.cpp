//===- stopwatch.cpp - Times an operation on all ranks --------------------===//

#include "runtime/calibration/stopwatch.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace mtplan::runtime {

namespace {

// A sample is long compared with the time to begin and end it.
constexpr double kSample =
    Stopwatch::kEnough / Stopwatch::kFewestSamples; // seconds
constexpr std::int64_t kMostRuns = 10'000;
constexpr int kMostSamples = 1000;

// Returns a quantile of sorted numbers, interpolated linearly.
double quantile(const std::vector<double> &sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = place - static_cast<double>(below);
  return sorted[below] + part * (sorted[above] - sorted[below]);
}

} // namespace

SecondsClock steadySeconds() {
  return [] {
    const std::chrono::duration<double> since =
        std::chrono::steady_clock::now().time_since_epoch();
    return since.count();
  };
}

Timing timingOf(std::vector<double> samples) {
  std::ranges::sort(samples);
  return {quantile(samples, 0.5), quantile(samples, 0.25),
          quantile(samples, 0.75), static_cast<int>(samples.size())};
}

Stopwatch::Stopwatch(World &theWorld, Queue &theQueue, SecondsClock theClock)
    : world(theWorld), queue(theQueue), clock(std::move(theClock)),
      allRanks(world.allRanks("calibration")) {}

double Stopwatch::agreed(double mine) {
  double all = 0.0;
  allRanks->allReduce("calibration", &mine, &all, {ElementType::f64, 1, 1},
                      Reduction::sum);
  return all / world.size();
}

double Stopwatch::sampleOf(const std::function<void(std::int64_t)> &run,
                           std::int64_t runs) {
  queue.finish();
  world.barrier("a sample of the calibration");
  const double start = clock();
  for (std::int64_t i = 0; i < runs; ++i)
    run(next++);
  queue.finish();
  return agreed((clock() - start) / static_cast<double>(runs));
}

Timing Stopwatch::time(double seconds,
                       const std::function<void(std::int64_t number)> &run) {
  next = 0;
  sampleOf(run, 1); // touches memory for the first time
  const double one = std::max(sampleOf(run, 1), 1e-9);
  const auto runs = static_cast<std::int64_t>(
      std::clamp(std::ceil(std::min(kSample, seconds / kFewestSamples) / one),
                 1.0, double(kMostRuns)));
  // The duration of the first sample decides the number of samples, so that all
  // ranks take equally many.
  const int wanted = std::clamp(
      static_cast<int>(std::min(seconds / (one * static_cast<double>(runs)),
                                static_cast<double>(kMostSamples))),
      kFewestSamples, kMostSamples);
  std::vector<double> samples;
  samples.reserve(static_cast<std::size_t>(wanted));
  for (int i = 0; i < wanted; ++i)
    samples.push_back(sampleOf(run, runs));
  return timingOf(std::move(samples));
}

} // namespace mtplan::runtime
