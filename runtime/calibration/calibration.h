//===- calibration.h - Measures a machine -----------------------*- C++ -*-===//
//
// Through the interfaces by which a step runs, so that what is measured is what
// will run: kernels of a Backend while all ranks run them, collectives and
// messages of a World. Shapes are fixed, never found by trying; operands take
// turns with others, so that caches hold no more of them than in a step.
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

/// The sizes that kernels are measured at.
struct CalibrationShapes {
  std::int64_t samples = 4, sequence = 256;
  std::int64_t hidden = 768, words = 16384;
  std::int64_t square = 2048; ///< of the largest product
  /// Bytes that operands take turns in: more than any cache holds.
  std::int64_t spread = 64 << 20;
  std::int64_t largestMessage = 64 << 20; ///< bytes
};
CalibrationShapes shapesOfCpu();
CalibrationShapes shapesOfGpu();

struct CalibrationOptions {
  CalibrationShapes shapes;
  std::vector<ElementType> types; ///< what the backend lacks is left out
  /// For all of it. What is left is shared out anew before each run, so that
  /// those which need longer are paid for by the others; a run has ten
  /// milliseconds, or its even share if that is less, and five samples anyhow.
  double seconds = 60.0;
  /// Of the consecutive ranks of a host; groups are measured inside it, and
  /// across where there are several.
  int ranksOfHost = 1;
};

/// Runs that follow each other and are alike for a person who waits.
struct CalibrationPart {
  std::string what;                          ///< "products, f32"
  std::size_t first = 1, last = 1, runs = 1; ///< of so many, counted from 1
};

/// Every rank calls it with the same options; all get the same.
/// \param said  told what is measured next, on every rank
std::vector<MeasuredRun>
calibrate(World &world, Backend &backend, const SecondsClock &clock,
          const CalibrationOptions &options,
          const std::function<void(const CalibrationPart &)> &said = {});

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CALIBRATION_CALIBRATION_H
