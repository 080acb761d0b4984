//===- calibration.cpp - Measures a machine -------------------------------===//

#include "runtime/calibration/calibration.h"

#include <stdexcept>

#include "runtime/backend/element.h"
#include "runtime/calibration/kernel_runs.h"
#include "runtime/calibration/link_runs.h"
#include "runtime/calibration/operands.h"

namespace mtplan::runtime {

namespace {

struct Prepared {
  KernelRun made;
  std::unique_ptr<Kernel> kernel;
};

// Those that the backend has; two kernels of which it says that they are one
/// only if they are.
void addPrepared(Backend &backend, KernelRun run, std::vector<Prepared> &all) {
  try {
    std::unique_ptr<Kernel> kernel = backend.prepare(run.spec);
    if (run.run.as != MeasuredAs::followed || !kernel->isInTurn())
      all.push_back({std::move(run), std::move(kernel)});
  } catch (const std::runtime_error &) {
    // A backend need not have every kernel of every type.
  }
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
          const std::function<void(const std::string &)> &said) {
  const auto say = [&](const std::string &what) {
    if (said)
      said(what);
  };
  std::vector<Prepared> kernels;
  addPrepared(backend, smallestRun(), kernels);
  for (const ElementType type : options.types)
    for (KernelRun &run : kernelRunsOf(options.shapes, type))
      addPrepared(backend, std::move(run), kernels);
  Memory &memory = backend.memory();
  // Whoever carries what the kernels see; clocks are compared by the host.
  const std::unique_ptr<World> carries = backend.carrier(world);
  std::vector<LinkRun> links =
      linkRunsOf(carries ? *carries : world, memory, options.ranksOfHost,
                 options.shapes.largestMessage);
  Stopwatch watch(world, backend.queue(), clock,
                  options.seconds /
                      static_cast<double>(kernels.size() + links.size()));
  std::vector<MeasuredRun> measured;
  for (Prepared &one : kernels) {
    say(one.made.run.kernel + ", " + nameOf(one.made.run.type));
    Operands operands(memory, one.made.spec, options.shapes.spread);
    one.made.run.timing = watch.time(
        [&](std::int64_t number) { operands.run(*one.kernel, number); });
    measured.push_back(std::move(one.made.run));
    one.kernel.reset();
  }
  for (LinkRun &link : links) {
    say(link.run.kernel);
    link.run.timing = watch.time(link.once);
    measured.push_back(std::move(link.run));
  }
  return measured;
}

} // namespace mtplan::runtime
