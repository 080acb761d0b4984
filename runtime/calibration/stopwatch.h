//===- stopwatch.h - Times an operation on all ranks ------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CALIBRATION_STOPWATCH_H
#define MTPLAN_RUNTIME_CALIBRATION_STOPWATCH_H

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/backend/queue.h"
#include "runtime/communicator/communicator.h"

namespace mtplan::runtime {

/// Returns seconds since an arbitrary moment.
using SecondsClock = std::function<double()>;
SecondsClock steadySeconds();

/// Seconds of one run: the median of its samples, and the middle half.
struct Timing {
  double seconds = 0.0;
  double low = 0.0, high = 0.0;
  int samples = 0;
};

/// Summarises samples in any order. At least one is needed.
Timing timingOf(std::vector<double> samples);

/// Times operations that all ranks run at once. Ranks share cores and memory,
/// so a kernel that runs alone takes another time than in a step. Every rank
/// makes the same calls, and all get the same answers: the mean over ranks.
class Stopwatch {
public:
  static constexpr int kFewestSamples = 5;
  /// Seconds after which a sample is long enough.
  static constexpr double kEnough = 0.01;

  Stopwatch(World &world, Queue &queue, SecondsClock clock);

  /// \param seconds  time limit beside the first run, the same on all ranks; at
  /// least kFewestSamples are taken all the same
  /// \param run      queues or runs the operation; gets the number of the run
  Timing time(double seconds,
              const std::function<void(std::int64_t number)> &run);

  /// Returns the mean over ranks.
  double agreed(double mine);

private:
  double sampleOf(const std::function<void(std::int64_t)> &run,
                  std::int64_t runs);

  World &world;
  Queue &queue;
  SecondsClock clock;
  std::unique_ptr<Communicator> allRanks;
  std::int64_t next = 0; ///< number of the next run
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CALIBRATION_STOPWATCH_H
