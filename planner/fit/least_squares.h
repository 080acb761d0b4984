//===- least_squares.h - Values that explain measurements best --*- C++ -*-===//
//
// Least squares with bounds, by damped Gauss-Newton steps (Levenberg 1944,
// Marquardt 1963) within the box. Derivatives are differences, so a model need
// only be smooth almost everywhere.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_FIT_LEAST_SQUARES_H
#define MTPLAN_PLANNER_FIT_LEAST_SQUARES_H

#include <cstdint>
#include <functional>
#include <vector>

namespace mtplan::planner {

/// The scale on which a value is searched.
enum class FitScale : std::uint8_t {
  linear,
  logarithmic, ///< may differ by orders of magnitude; `least` > 0
  root,        ///< the model is smooth in its square root; `least` >= 0
};

struct FitUnknown {
  double least = 0.0, most = 1.0;
  std::vector<double> starts; ///< within the bounds, at least one
  FitScale scale = FitScale::linear;
};

/// Returns the errors of all measurements, always the same number of them; 0 is
/// exact.
using FitErrors =
    std::function<std::vector<double>(const std::vector<double> &values)>;

struct LeastSquares {
  std::vector<double> values;
  std::vector<double> errors; ///< the errors that remain
  double rms = 0.0;           ///< of them
  /// By value: its standard deviation if the errors are independent and the
  /// remaining ones typical; 0 at a bound and if there are as many values as
  /// measurements.
  std::vector<double> deviations;
  std::vector<bool> atBound;
  /// Values on which no measurement depends.
  std::vector<std::size_t> idle;
  /// Values that can change together and leave every measurement as it is;
  /// empty: each is determined.
  std::vector<std::size_t> entangled;
};

/// Returns the best fit, started from the first start of every unknown, from
/// the second of every, and so on (an unknown with fewer keeps its last). The
/// earliest of equal fits counts.
LeastSquares solveLeastSquares(const std::vector<FitUnknown> &unknowns,
                               const FitErrors &errors);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_FIT_LEAST_SQUARES_H
