//===- calibration.cpp - Measures a machine -------------------------------===//

#include "runtime/calibration/calibration.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>

#include "runtime/backend/element.h"
#include "runtime/calibration/kernel_runs.h"
#include "runtime/calibration/link_runs.h"

namespace mtplan::runtime {

//===----------------------------------------------------------------------===//
// Stopwatch
//===----------------------------------------------------------------------===//

namespace {

// A sample is long compared with the time to start and end it.
constexpr double kSample =
    Stopwatch::kEnough / Stopwatch::kFewestSamples; // seconds
constexpr std::int64_t kMostRuns = 10'000;
/// The work between two samples takes this multiple of the time of a sample.
/// Products take about two thirds of a step of a dense model on a GPU
/// (bench/results/2026-11-27-gpu.md).
constexpr double kBetween = 0.5;
constexpr int kMostSamples = 1000;

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

double Stopwatch::sampleOf(const std::function<void()> &work,
                           std::int64_t runs) {
  queue.finish();
  world.barrier("a sample of the calibration");
  const double start = clock();
  work();
  queue.finish();
  return agreed((clock() - start) / static_cast<double>(runs));
}

Timing Stopwatch::time(double seconds,
                       const std::function<void(std::int64_t number)> &run,
                       bool recorded,
                       const std::function<void(double seconds)> &between) {
  next = 0;
  const auto once = [&] { run(next++); };
  sampleOf(once, 1); // warms up: the first access maps memory
  const double one = std::max(sampleOf(once, 1), 1e-9);
  const auto runs = static_cast<std::int64_t>(
      std::clamp(std::ceil(std::min(kSample, seconds / kFewestSamples) / one),
                 1.0, double(kMostRuns)));
  // Ranks agree on the duration of the second run, and therefore take the same
  // number of samples.
  const double ofSample =
      one * static_cast<double>(runs) * (between ? 1.0 + kBetween : 1.0);
  const int wanted =
      std::clamp(static_cast<int>(std::min(seconds / ofSample,
                                           static_cast<double>(kMostSamples))),
                 kFewestSamples, kMostSamples);
  std::function<void()> work = [&] {
    for (std::int64_t i = 0; i < runs; ++i)
      once();
  };
  if (recorded && queue.records()) {
    const std::shared_ptr<Recording> all = queue.recorded(work);
    work = [all] { all->replay(); };
    sampleOf(work, runs); // the first replay uploads the recording
  }
  std::vector<double> samples;
  samples.reserve(static_cast<std::size_t>(wanted));
  for (int i = 0; i < wanted; ++i) {
    if (between && i > 0)
      between(samples.back() * static_cast<double>(runs));
    samples.push_back(sampleOf(work, runs));
  }
  return timingOf(std::move(samples));
}

//===----------------------------------------------------------------------===//
// Calibration
//===----------------------------------------------------------------------===//

namespace {

struct Prepared {
  KernelRun made;
  std::unique_ptr<Kernel> kernel;
};

// Adds a kernel if the backend supports it. A fused pair is added only if the
// backend does not run it as two kernels.
void addPrepared(Backend &backend, KernelRun run, std::vector<Prepared> &all) {
  try {
    std::unique_ptr<Kernel> kernel = backend.prepare(run.spec);
    if (run.run.as != MeasuredAs::followed || !kernel->isSequential())
      all.push_back({std::move(run), std::move(kernel)});
  } catch (const std::runtime_error &) {
    // A backend need not support every kernel for every type.
  }
}

/// Queues memory-bound kernels.
class MemoryWork {
public:
  MemoryWork(Backend &backend, Stopwatch &watch, std::int64_t bytes)
      : spec(specOf(bytes)), kernel(backend.prepare(spec)),
        operands(backend.memory(), spec, bytes),
        seconds(watch
                    .time(
                        Stopwatch::kEnough,
                        [this](std::int64_t number) {
                          operands.run(*kernel, number);
                        },
                        true)
                    .seconds) {
    seconds = std::max(seconds, 1e-9);
  }

  /// Queues work of about `wanted` seconds.
  void run(double wanted) {
    for (std::int64_t i = 0; static_cast<double>(i) * seconds < wanted; ++i)
      operands.run(*kernel, i);
  }

private:
  static KernelSpec specOf(std::int64_t bytes) {
    const TensorView view{
        ElementType::f32, {bytes / bytesOf(ElementType::f32)}, {}};
    return {"copy", "work between samples", {}, {view}, {view}};
  }

  const KernelSpec spec;
  const std::unique_ptr<Kernel> kernel;
  Operands operands;
  double seconds; ///< of one kernel
};

/// Returns whether arithmetic takes most of the time of a run.
bool isArithmetic(const MeasuredRun &run) {
  return run.as == MeasuredAs::product || run.as == MeasuredAs::attention ||
         (run.as == MeasuredAs::followed && run.after.empty());
}

std::string partOf(const MeasuredRun &run) {
  const std::string type = std::string(", ") + nameOf(run.type);
  switch (run.as) {
  case MeasuredAs::launches:
    return "kernels that do almost nothing";
  case MeasuredAs::pass:
    return "passes" + type;
  case MeasuredAs::product:
    return "products" + type;
  case MeasuredAs::followed:
    return (run.after.empty() ? "products" : "passes") + type;
  case MeasuredAs::attention:
    return "attention" + type;
  case MeasuredAs::collective:
    return "collectives over " + std::to_string(run.ranks) + " ranks" +
           (run.stride > 1 ? ", every " + std::to_string(run.stride) + "th"
                           : "");
  case MeasuredAs::message:
    return "messages to rank + " + std::to_string(run.stride);
  }
  return {};
}

} // namespace

CalibrationShapes shapesOfCpu() { return {}; }

CalibrationShapes shapesOfGpu() {
  return {.samples = 4,
          .sequence = 2048,
          .hidden = 4096,
          .words = 50304,
          .square = 8192,
          .spread = 256 << 20,
          .largestMessage = 1 << 30};
}

std::vector<MeasuredRun>
calibrate(World &world, Backend &backend, const SecondsClock &clock,
          const CalibrationOptions &options,
          const std::function<void(const CalibrationPart &)> &said) {
  const double end = clock() + options.seconds;
  std::vector<Prepared> kernels;
  addPrepared(backend, smallestRun(), kernels);
  for (const ElementType type : options.types)
    for (KernelRun &run : kernelRunsOf(options.shapes, type))
      addPrepared(backend, std::move(run), kernels);
  Memory &memory = backend.memory();
  // If `carries` is null, `world` itself transfers data in the backend's
  // memory. The stopwatch always uses `world`, with memory of the host.
  const std::unique_ptr<World> carries = backend.carrier(world);
  std::vector<LinkRun> links =
      linkRunsOf(carries ? *carries : world, memory, options.ranksOfHost,
                 options.shapes.largestMessage);
  std::vector<MeasuredRun> runs;
  runs.reserve(kernels.size() + links.size());
  for (const Prepared &one : kernels)
    runs.push_back(one.made.run);
  for (const LinkRun &link : links)
    runs.push_back(link.run);

  Stopwatch watch(world, backend.queue(), clock);
  const double least = std::min(
      Stopwatch::kEnough, options.seconds / static_cast<double>(runs.size()));
  std::size_t at = 0;
  std::string part;
  std::unique_ptr<MemoryWork> others;
  if (backend.queue().records())
    others =
        std::make_unique<MemoryWork>(backend, watch, options.shapes.spread);
  const auto time = [&](const std::function<void(std::int64_t)> &once,
                        bool recorded) {
    if (partOf(runs[at]) != part) {
      part = partOf(runs[at]);
      const auto past = std::find_if(
          runs.begin() + static_cast<std::ptrdiff_t>(at), runs.end(),
          [&](const MeasuredRun &run) { return partOf(run) != part; });
      if (said)
        said({part, at + 1, static_cast<std::size_t>(past - runs.begin()),
              runs.size()});
    }
    const double share =
        watch.agreed(end - clock()) / static_cast<double>(runs.size() - at);
    std::function<void(double)> between;
    if (others && isArithmetic(runs[at]))
      between = [&](double seconds) { others->run(kBetween * seconds); };
    runs[at++].timing =
        watch.time(std::max(share, least), once, recorded, between);
  };
  for (Prepared &one : kernels) {
    Operands operands(memory, one.made.spec, options.shapes.spread);
    time([&](std::int64_t number) { operands.run(*one.kernel, number); }, true);
    one.kernel.reset();
  }
  for (const LinkRun &link : links)
    time(link.once, false);
  return runs;
}

} // namespace mtplan::runtime
