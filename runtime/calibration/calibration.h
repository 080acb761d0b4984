//===- calibration.h - Measures a machine -----------------------*- C++ -*-===//
//
// Calibration uses the interfaces that a step uses, so that it measures the
// code that will run. It times kernels of a Backend while all ranks run them,
// and collectives and messages of a World. Shapes are fixed, not searched. Runs
// alternate among several copies of the operands, so that caches hold no larger
// part of the operands than in a step. On a device, memory-bound kernels run
// between samples of products and attention, because a device that only
// multiplies reaches its power limit, and lowers its clock more than in a step.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CALIBRATION_CALIBRATION_H
#define MTPLAN_RUNTIME_CALIBRATION_CALIBRATION_H

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/backend/kernel.h"
#include "runtime/backend/queue.h"
#include "runtime/communicator/communicator.h"

namespace mtplan::runtime {

/// Returns the seconds since an arbitrary moment.
using SecondsClock = std::function<double()>;
SecondsClock steadySeconds();

/// Holds the median and the quartiles of the time of one run, in seconds.
struct Timing {
  double seconds = 0.0;
  double low = 0.0, high = 0.0;
  int samples = 0;
};

/// Summarizes at least one sample, in any order.
Timing timingOf(std::vector<double> samples);

/// Times operations that all ranks run at the same time, as in a step, because
/// ranks share cores and memory. Every rank makes the same calls and gets the
/// same results: the mean over ranks.
class Stopwatch {
public:
  static constexpr int kFewestSamples = 5; ///< samples of one operation
  /// This many seconds suffice to measure one operation.
  static constexpr double kEnough = 0.01;

  /// All ranks construct their stopwatches together. `world` and `queue` must
  /// outlive the stopwatch.
  Stopwatch(World &world, Queue &queue, SecondsClock clock);

  /// Returns the time of an operation, in at least kFewestSamples samples.
  /// \param seconds  time limit, without warm-up; the same on all ranks
  /// \param run      queues or runs the operation; `number` counts the runs
  /// \param recorded whether the runs of a sample may be recorded and replayed,
  /// as in a step. If the queue records, the time does not include the host's
  /// launches.
  /// \param between  if set, queues untimed work between two samples; `seconds`
  /// is the time of the earlier sample
  Timing time(double seconds,
              const std::function<void(std::int64_t number)> &run,
              bool recorded = false,
              const std::function<void(double seconds)> &between = {});

  /// Returns the mean of `mine` over all ranks.
  double agreed(double mine);

private:
  double sampleOf(const std::function<void()> &work, std::int64_t runs);

  World &world;
  Queue &queue;
  SecondsClock clock;
  std::unique_ptr<Communicator> allRanks;
  std::int64_t next = 0; ///< number of the next run
};

/// Lists the kinds of measurements and the MeasuredRun members of each.
enum class MeasuredAs : std::uint8_t {
  launches,   ///< `count` consecutive kernels that do almost nothing
  pass,       ///< a memory-bound kernel that moves `bytes`
  product,    ///< `batch` products of [m][k] by [k][n]
  followed,   ///< `kernel` as fused consumer of its producer `after`
  attention,  ///< `batch` heads of m queries over n keys of k features
  collective, ///< a collective of `bytes` over `ranks` ranks, `stride` apart
  message,    ///< every rank r sends `bytes` to rank r + `stride`
};

/// Holds the operation and the time of one measurement. Sizes that the kind
/// `as` does not need are unused.
struct MeasuredRun {
  MeasuredAs as{};
  std::string kernel; ///< "einsum", "layer_norm"; "all_reduce", "send"
  /// Names the setting that changes the computation: the function of an
  /// activation, or "dropout" for attention with dropout.
  std::string variant;
  /// For `followed`, `after` names the memory-bound producer, and `bytesAfter`
  /// counts the bytes that the producer moves without `kernel`. `after` is
  /// empty if the producer is a product, which m, n and k describe.
  std::string after;
  std::int64_t bytesAfter = 0;
  std::string what; ///< description for reports, e.g. "a layer up"
  ElementType type = ElementType::f32;
  std::int64_t count = 0;
  /// For `pass`, counts the bytes of operands and results. A lookup table
  /// counts only with the rows that are read, and a tensor updated in place
  /// counts twice. For `collective`, counts the bytes of the whole (gathered)
  /// tensor; for `message`, the bytes that each rank sends; for `followed`, the
  /// bytes of the producer's result.
  std::int64_t bytes = 0;
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  bool causal = false;
  int ranks = 0, stride = 1;
  Timing timing;
};

struct CalibrationShapes {
  std::int64_t samples = 4, sequence = 256;
  std::int64_t hidden = 768, words = 16384;
  std::int64_t square = 2048; ///< m, n and k of the largest product
  /// All copies of a kernel's operands together take about this many bytes, so
  /// that they do not fit into the caches.
  std::int64_t spread = 64 << 20;
  std::int64_t largestMessage = 64 << 20; ///< bytes
};
CalibrationShapes shapesOfCpu();
CalibrationShapes shapesOfGpu();

struct CalibrationOptions {
  CalibrationShapes shapes;
  std::vector<ElementType> types; ///< types that the backend lacks are skipped
  /// Limits the time of the whole calibration, in seconds. Before each run, the
  /// remaining time is divided equally among the remaining runs. A run has at
  /// least ten milliseconds (or an equal share of `seconds` if that is less),
  /// and takes at least five samples.
  double seconds = 60.0;
  /// Counts the consecutive ranks of each host. Groups are measured within a
  /// host and, if there are several hosts, across them.
  int ranksOfHost = 1;
};

/// Describes consecutive runs that are reported once, before the first.
struct CalibrationPart {
  std::string what; ///< "products, f32"
  /// Hold the numbers of the first and the last run of the part, counted from
  /// 1, and the number of all runs of the calibration.
  std::size_t first = 1, last = 1, runs = 1;
};

/// Measures the kernels of `backend`, and collectives and messages between the
/// ranks. All ranks must call this with the same options, and get the same
/// result.
/// \param said  called on every rank before a part is measured
std::vector<MeasuredRun>
calibrate(World &world, Backend &backend, const SecondsClock &clock,
          const CalibrationOptions &options,
          const std::function<void(const CalibrationPart &)> &said = {});

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CALIBRATION_CALIBRATION_H
