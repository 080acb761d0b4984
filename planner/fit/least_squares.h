//===- least_squares.h - Values that explain measurements best --*- C++ -*-===//
//
// Least squares with bounds, by damped Gauss-Newton steps (Levenberg 1944,
// Marquardt 1963) within the box. Derivatives are differences, so a model need
// not be smooth everywhere, only almost everywhere.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_FIT_LEAST_SQUARES_H
#define MTPLAN_PLANNER_FIT_LEAST_SQUARES_H

#include <cstdint>
#include <functional>
#include <vector>

namespace mtplan::planner {

/// On what scale a value is searched.
enum class FitScale : std::uint8_t {
  linear,
  logarithmic, ///< may differ by orders of magnitude; `least` > 0
  root,        ///< its square root is what the model is smooth in; `least` >= 0
};

struct FitUnknown {
  double least = 0.0, most = 1.0;
  std::vector<double> starts; ///< within the bounds, at least one
  FitScale scale = FitScale::linear;
};

/// Errors of all measurements, 0 is exact. Always the same number.
using FitErrors =
    std::function<std::vector<double>(const std::vector<double> &values)>;

struct LeastSquares {
  std::vector<double> values;
  std::vector<double> errors; ///< what is left
  double rms = 0.0;           ///< of them
  /// By value: its standard deviation, were the errors independent and what is
  /// left of them typical; 0 at a bound and if there are as many values as
  /// measurements.
  std::vector<double> deviations;
  std::vector<bool> atBound;
  /// Values that no measurement depends on.
  std::vector<std::size_t> idle;
  /// Values that can change together and leave every measurement as it is;
  /// empty: each is told from the others.
  std::vector<std::size_t> entangled;
};

/// The best from the first start of every unknown, from the second of every,
/// and so on (an unknown with fewer keeps its last); ties: the earliest.
LeastSquares solveLeastSquares(const std::vector<FitUnknown> &unknowns,
                               const FitErrors &errors);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_FIT_LEAST_SQUARES_H
