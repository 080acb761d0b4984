//===- stopwatch.h - How long something takes on all ranks ------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CALIBRATION_STOPWATCH_H
#define MTPLAN_RUNTIME_CALIBRATION_STOPWATCH_H

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/backend/queue.h"
#include "runtime/communicator/communicator.h"

namespace mtplan::runtime {

/// Seconds since some moment.
using SecondsClock = std::function<double()>;
SecondsClock steadySeconds();

/// Seconds of one run: of its samples the median and the middle half.
struct Timing {
  double seconds = 0.0;
  double low = 0.0, high = 0.0;
  int samples = 0;
};

/// The order of `samples` does not matter. At least one.
Timing timingOf(std::vector<double> samples);

/// Times what all ranks do at once: ranks share cores and memory, so that a
/// kernel alone on a machine is not the kernel of a step. Every rank makes the
/// same calls, and all get the same answers: the mean over ranks.
class Stopwatch {
public:
  static constexpr int kFewestSamples = 5;
  /// In so many seconds no sample is shorter than it should be.
  static constexpr double kEnough = 0.01;

  Stopwatch(World &world, Queue &queue, SecondsClock clock);

  /// \param seconds  for it, beside its first run, the same on all ranks; at
  ///                 least kFewestSamples are taken whatever they need
  /// \param run      queues or does what is timed, the number'th time
  Timing time(double seconds,
              const std::function<void(std::int64_t number)> &run);

  /// The mean over ranks.
  double agreed(double mine);

private:
  double sampleOf(const std::function<void(std::int64_t)> &run,
                  std::int64_t runs);

  World &world;
  Queue &queue;
  SecondsClock clock;
  std::unique_ptr<Communicator> everyone;
  std::int64_t next = 0; ///< run of this timing
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CALIBRATION_STOPWATCH_H
