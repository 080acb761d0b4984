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

#include <functional>
#include <string>
#include <vector>

#include "runtime/backend/kernel.h"
#include "runtime/calibration/measured_run.h"

namespace mtplan::runtime {

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
