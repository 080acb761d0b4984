//===- least_squares.h - Values that explain measurements best --*- C++ -*-===//
//
// Solves bounded least squares by damped Gauss-Newton steps (Levenberg 1944,
// Marquardt 1963). Derivatives are finite differences, so it suffices that a
// model is smooth almost everywhere.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_FIT_LEAST_SQUARES_H
#define MTPLAN_PLANNER_FIT_LEAST_SQUARES_H

#include <cstdint>
#include <functional>
#include <vector>

namespace mtplan::planner {

enum class FitScale : std::uint8_t {
  linear,
  logarithmic, ///< the value may span orders of magnitude; `least` > 0
  root,        ///< the model is smooth in the square root; `least` >= 0
};

struct FitUnknown {
  double least = 0.0, most = 1.0;
  std::vector<double> starts; ///< within the bounds, at least one
  FitScale scale = FitScale::linear;
};

/// Returns the error of every measurement, in a fixed order. An error of 0
/// means that the model is exact.
using FitErrors =
    std::function<std::vector<double>(const std::vector<double> &values)>;

struct LeastSquares {
  std::vector<double> values;
  std::vector<double> errors; ///< at `values`
  double rms = 0.0;           ///< root mean square of `errors`
  /// Holds the standard deviation of each value, on the assumption that the
  /// errors of the measurements are independent and as large as `rms`. The
  /// deviation is 0 for a value at a bound or in `idle`. All deviations are 0
  /// if `dependent` is not empty, or if there are no more measurements than
  /// values that are neither at a bound nor in `idle`.
  std::vector<double> deviations;
  std::vector<bool> atBound;
  /// Lists the indices of values on which no measurement depends.
  std::vector<std::size_t> idle;
  /// Lists the indices of values that can change together without effect on any
  /// measurement. The list is empty if the measurements determine every value.
  std::vector<std::size_t> dependent;
};

/// Returns the best fit over several descents. Descent i begins at start i of
/// every unknown; an unknown with fewer starts uses its last start. Among equal
/// fits, the earliest is returned.
LeastSquares solveLeastSquares(const std::vector<FitUnknown> &unknowns,
                               const FitErrors &errors);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_FIT_LEAST_SQUARES_H
