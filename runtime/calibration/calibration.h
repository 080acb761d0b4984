//===- calibration.h - Measures a machine -----------------------*- C++ -*-===//
//
// Measures through the interfaces that a step uses, so that what is measured is
// what will run: kernels of a Backend while all ranks run them, collectives and
// messages of a World. Shapes are fixed and not found by trying. Operands
// alternate among copies, so that caches hold no more of them than in a step.
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

enum class MeasuredAs : std::uint8_t {
  launches,   ///< `count` kernels that do almost nothing, one after another
  pass,       ///< a kernel that moves `bytes`
  product,    ///< `batch` of m x k by k x n
  followed,   ///< `kernel` fused into its producer `after`
  attention,  ///< `batch` heads of m queries over n keys of k features
  collective, ///< of `bytes` over groups of `ranks` that are `stride` apart
  message, ///< of `bytes` to the rank `stride` further, from all ranks at once
};

/// Only the members that `as` names are used.
struct MeasuredRun {
  MeasuredAs as{};
  std::string kernel; ///< "einsum", "layer_norm"; "all_reduce", "send"
  /// The variant, where a setting changes what is computed: the function of an
  /// activation; "dropout" for attention with dropout.
  std::string variant;
  /// For a fused pair: the pass that produces the input of `kernel`, and the
  /// bytes that it moves alone. Empty stands for a product, described by m, n
  /// and k.
  std::string after;
  std::int64_t bytesAfter = 0;
  std::string what; ///< for people: "1024 x 768 by 768 x 3072, forward"
  ElementType type = ElementType::f32;
  std::int64_t count = 0;
  /// For a pass: operands read and results written, each once, except that a
  /// table counts as much as is looked up in it, and a tensor updated in place
  /// counts twice. For a collective: the whole tensor, the gathered one of a
  /// gather. For a fused pair: the tensor between the two.
  std::int64_t bytes = 0;
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  bool causal = false; ///< for attention
  int ranks = 0, stride = 1;
  Timing timing;
};

/// The sizes at which kernels are measured.
struct CalibrationShapes {
  std::int64_t samples = 4, sequence = 256;
  std::int64_t hidden = 768, words = 16384;
  std::int64_t square = 2048; ///< of the largest product
  /// Total bytes of the copies that operands alternate among: more than any
  /// cache holds.
  std::int64_t spread = 64 << 20;
  std::int64_t largestMessage = 64 << 20; ///< bytes
};
CalibrationShapes shapesOfCpu();
CalibrationShapes shapesOfGpu();

struct CalibrationOptions {
  CalibrationShapes shapes;
  std::vector<ElementType> types; ///< types that the backend lacks are left out
  /// Time limit of the whole calibration. The rest is divided anew before each
  /// run, so that fast runs pay for slow ones. A run has ten milliseconds, or
  /// its even share if that is less, and at least five samples.
  double seconds = 60.0;
  /// Number of consecutive ranks on a host. Groups are measured within a host,
  /// and across hosts if there are several.
  int ranksOfHost = 1;
};

/// Consecutive runs that a progress report shows as one.
struct CalibrationPart {
  std::string what; ///< "products, f32"
  /// Number of the runs among all, from 1.
  std::size_t first = 1, last = 1, runs = 1;
};

/// Every rank calls this with the same options, and all get the same result.
/// \param said  called on every rank with the part that is measured next
std::vector<MeasuredRun>
calibrate(World &world, Backend &backend, const SecondsClock &clock,
          const CalibrationOptions &options,
          const std::function<void(const CalibrationPart &)> &said = {});

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CALIBRATION_CALIBRATION_H
