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
  double seconds = 60.0;          ///< for all of it, about
  /// Of the consecutive ranks of a host; groups are measured inside it, and
  /// across where there are several.
  int ranksOfHost = 1;
};

/// Every rank calls it with the same options; all get the same.
/// \param said  told what is measured next, on every rank
std::vector<MeasuredRun>
calibrate(World &world, Backend &backend, const SecondsClock &clock,
          const CalibrationOptions &options,
          const std::function<void(const std::string &)> &said = {});

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CALIBRATION_CALIBRATION_H
