//===- measurements_json.h - Measured work and its time ---------*- C++ -*-===//
//
// Reads measurement files: a machine file in which figures may be the word
// "fit", and lists of measurements. docs/measurements-format.md describes the
// format.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_FIT_MEASUREMENTS_JSON_H
#define MTPLAN_PLANNER_FIT_MEASUREMENTS_JSON_H

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "planner/cost/collective_cost.h"

namespace mtplan::planner {

enum class MeasuredKind : std::uint8_t {
  launches,    ///< `count` empty kernels, one after another
  stream,      ///< a copy kernel that reads and writes `bytes` in all
  elementwise, ///< a kernel such as a norm that moves `bytes` in all
  product,     ///< `batch` products of m x k by k x n
  allReduce,
  allGather,
  reduceScatter,
  allToAll,
  send, ///< a send to the rank `stride` away, by all ranks at once
};
const char *nameOf(MeasuredKind kind);
/// Returns whether the kind uses the network, as all collectives and `send` do.
bool isCollective(MeasuredKind kind);

/// Describes one measurement. Members that its kind does not use keep their
/// defaults.
struct Measurement {
  MeasuredKind kind{};
  double count = 0, bytes = 0;
  double m = 0, n = 0, k = 0, batch = 0;
  std::optional<Precision> precision; ///< of a product; none: the default
  int ranks = 0, stride = 0;
  double seconds = 0;
  std::string pointer; ///< JSON pointer into the measurement file

  /// Returns the planner's price in seconds.
  double predicted(const Machine &machine) const;
  /// Returns text such as "product of 4096 x 4096 by 4096 x 512".
  std::string describe() const;
};

enum class FigureKind : std::uint8_t {
  launch,
  bandwidthEfficiency,
  elementwiseEfficiency,
  gemmEfficiency,
  gemmFp32,
  gemmFp16,
  gemmBf16,
  wave,
  unaligned64,
  unaligned8,
  batched,
  tileRate,
  levelBandwidth,
  levelLatency,
  levelBase,
  reductionBandwidth,
  reductionLatency,
};

struct Figure {
  FigureKind kind{};
  std::size_t index = 0; ///< of the tile or level
  std::string pointer;   ///< JSON pointer into the measurement file
};

struct Measurements {
  Machine machine; ///< figures to be fitted have arbitrary legal values
  std::vector<Figure> figures; ///< of the device, then of each level
  std::vector<Measurement> rows;
};

/// Reports an invalid measurement file, in the format of MachineError.
class MeasurementsError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Reads and checks a measurement file's text.
/// \throws MeasurementsError with every violation
Measurements parseMeasurements(const std::string &text);

struct MachineFit; // fit_machine.h

/// Returns the text of a machine file: /machine of the measurement file `text`
/// with the fitted figures in place of "fit". parseMachine() of the returned
/// text is fit.machine.
std::string fittedMachineText(const std::string &text, const MachineFit &fit);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_FIT_MEASUREMENTS_JSON_H
