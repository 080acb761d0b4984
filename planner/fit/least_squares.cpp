//===- least_squares.cpp - Values that explain measurements best ----------===//

#include "planner/fit/least_squares.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cassert>
#include <cmath>

namespace mtplan::planner {

namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr int kMostSteps = 500;
// Sets the step of finite differences, relative to a value on its scale. The
// model's rounding errors are about 1e-16.
constexpr double kDifference = 1e-6;
// A measurement counts as independent of a value if a change of the value by
// the fraction kProbe changes the error by at most kNoEffect.
constexpr double kProbe = 0.1, kNoEffect = 1e-6;
// If a singular value of the normalised derivatives is below this share of the
// largest one, no measurement determines the corresponding combination of
// values.
constexpr double kNoSignal = 1e-6;

double toScale(double value, FitScale scale) {
  return scale == FitScale::logarithmic ? std::log(value)
         : scale == FitScale::root      ? std::sqrt(value)
                                        : value;
}

double fromScale(double point, FitScale scale) {
  return scale == FitScale::logarithmic ? std::exp(point)
         : scale == FitScale::root      ? point * point
                                        : point;
}

// Returns the derivative of a value with respect to its point on the scale.
double stretch(double value, FitScale scale) {
  return scale == FitScale::logarithmic ? value
         : scale == FitScale::root      ? 2.0 * std::sqrt(value)
                                        : 1.0;
}

class Solver {
public:
  Solver(const std::vector<FitUnknown> &u, const FitErrors &e)
      : unknowns(u), errorsOf(e), size(static_cast<Eigen::Index>(u.size())),
        least(size), most(size) {
    for (Eigen::Index i = 0; i < size; ++i) {
      least[i] = toScale(at(i).least, at(i).scale);
      most[i] = toScale(at(i).most, at(i).scale);
    }
  }

  LeastSquares run() {
    std::size_t starts = 1;
    for (const FitUnknown &unknown : unknowns) {
      assert(!unknown.starts.empty());
      starts = std::max(starts, unknown.starts.size());
    }
    VectorXd best;
    double bestCost = 0.0;
    for (std::size_t s = 0; s < starts; ++s) {
      VectorXd point(size);
      for (Eigen::Index i = 0; i < size; ++i)
        point[i] = toScale(at(i).starts[std::min(s, at(i).starts.size() - 1)],
                           at(i).scale);
      double cost = descend(point);
      if (s == 0 || cost < bestCost) {
        best = point;
        bestCost = cost;
      }
    }
    return describe(best);
  }

private:
  const FitUnknown &at(Eigen::Index i) const {
    return unknowns[static_cast<std::size_t>(i)];
  }

  std::vector<double> valuesAt(const VectorXd &point) const {
    std::vector<double> values;
    for (Eigen::Index i = 0; i < size; ++i)
      values.push_back(std::clamp(fromScale(point[i], at(i).scale), at(i).least,
                                  at(i).most));
    return values;
  }

  VectorXd errorsAt(const VectorXd &point) const {
    std::vector<double> errors = errorsOf(valuesAt(point));
    return Eigen::Map<VectorXd>(errors.data(),
                                static_cast<Eigen::Index>(errors.size()));
  }

  // Returns [error][value]: the derivatives of errors with respect to values on
  // their scales. The points of the finite differences are within the bounds.
  MatrixXd slopesAt(const VectorXd &point) const {
    MatrixXd slopes;
    for (Eigen::Index i = 0; i < size; ++i) {
      double step = kDifference * std::max(1.0, std::abs(point[i]));
      VectorXd low = point, high = point;
      low[i] = std::max(least[i], point[i] - step);
      high[i] = std::min(most[i], point[i] + step);
      VectorXd change = errorsAt(high) - errorsAt(low);
      if (i == 0)
        slopes.resize(change.size(), size);
      slopes.col(i) = change / (high[i] - low[i]);
    }
    return slopes;
  }

  // Moves `point` to a local minimum; returns the sum of squares there.
  double descend(VectorXd &point) const {
    VectorXd errors = errorsAt(point);
    double cost = errors.squaredNorm(), damping = 1e-3;
    for (int steps = 0; steps < kMostSteps; ++steps) {
      MatrixXd slopes = slopesAt(point);
      VectorXd downhill = -slopes.transpose() * errors;
      // A value at a bound stays fixed if the step would move it beyond the
      // bound.
      for (Eigen::Index i = 0; i < size; ++i)
        if ((point[i] <= least[i] && downhill[i] < 0) ||
            (point[i] >= most[i] && downhill[i] > 0)) {
          slopes.col(i).setZero();
          downhill[i] = 0.0;
        }
      double before = cost;
      while (damping < 1e12) {
        VectorXd to = point + dampedStep(slopes, errors, damping);
        to = to.cwiseMax(least).cwiseMin(most);
        VectorXd there = errorsAt(to);
        if (there.squaredNorm() < cost) {
          point = to;
          errors = there;
          cost = there.squaredNorm();
          damping = std::max(damping / 5, 1e-12);
          break;
        }
        damping *= 4;
      }
      if (before - cost <= 1e-12 * before)
        break;
    }
    return cost;
  }

  // Solves [slopes; sqrt(damping) diag] step = [-errors; 0] in least squares.
  VectorXd dampedStep(const MatrixXd &slopes, const VectorXd &errors,
                      double damping) const {
    MatrixXd system = MatrixXd::Zero(slopes.rows() + size, size);
    system.topRows(slopes.rows()) = slopes;
    for (Eigen::Index i = 0; i < size; ++i)
      system(slopes.rows() + i, i) =
          std::sqrt(damping) * std::max(slopes.col(i).norm(), 1e-12);
    VectorXd target = VectorXd::Zero(system.rows());
    target.head(errors.size()) = -errors;
    return system.colPivHouseholderQr().solve(target);
  }

  LeastSquares describe(const VectorXd &point) const {
    LeastSquares result;
    result.values = valuesAt(point);
    VectorXd errors = errorsAt(point);
    result.errors.assign(errors.begin(), errors.end());
    result.rms =
        std::sqrt(errors.squaredNorm() /
                  std::max<double>(1.0, static_cast<double>(errors.size())));
    for (Eigen::Index i = 0; i < size; ++i)
      result.atBound.push_back(point[i] <= least[i] || point[i] >= most[i]);
    // `determined` includes values at a bound, which can depend on other
    // values.
    std::vector<Eigen::Index> determined, inside;
    for (Eigen::Index i = 0; i < size; ++i) {
      if (isIdle(point, errors, i)) {
        result.idle.push_back(static_cast<std::size_t>(i));
        continue;
      }
      determined.push_back(i);
      if (!result.atBound[static_cast<std::size_t>(i)])
        inside.push_back(i);
    }
    result.deviations.assign(unknowns.size(), 0.0);
    if (determined.empty())
      return result;
    MatrixXd slopes = slopesAt(point);
    entangle(slopes, determined, result);
    if (result.dependent.empty() && !inside.empty())
      spread(slopes, inside, result);
    return result;
  }

  bool isIdle(const VectorXd &point, const VectorXd &errors,
              Eigen::Index i) const {
    double value = fromScale(point[i], at(i).scale);
    double probe = kProbe * (value > 0 ? value : at(i).starts.front());
    for (double to : {value + probe, value - probe}) {
      if (to > at(i).most || to < at(i).least)
        continue;
      VectorXd other = point;
      other[i] = toScale(to, at(i).scale);
      if ((errorsAt(other) - errors).cwiseAbs().maxCoeff() > kNoEffect)
        return false;
    }
    return true;
  }

  /// Holds the singular value decomposition of the derivatives with respect to
  /// a selection of the values. Each value's column is first divided by the
  /// column's norm; `lengths` holds the norms.
  struct Decomposition {
    VectorXd lengths;
    Eigen::JacobiSVD<MatrixXd> svd;
  };
  static Decomposition decompose(const MatrixXd &all,
                                 const std::vector<Eigen::Index> &which) {
    auto count = static_cast<Eigen::Index>(which.size());
    MatrixXd slopes(all.rows(), count);
    VectorXd lengths(count);
    for (Eigen::Index c = 0; c < count; ++c) {
      auto column = all.col(which[static_cast<std::size_t>(c)]);
      lengths[c] = std::max(column.norm(), 1e-300);
      slopes.col(c) = column / lengths[c];
    }
    return {lengths, Eigen::JacobiSVD<MatrixXd>(
                         slopes, Eigen::ComputeThinU | Eigen::ComputeFullV)};
  }

  static void entangle(const MatrixXd &all,
                       const std::vector<Eigen::Index> &determined,
                       LeastSquares &result) {
    auto count = static_cast<Eigen::Index>(determined.size());
    auto svd = decompose(all, determined).svd;
    const auto &strengths = svd.singularValues();
    Eigen::Index rank = 0;
    while (rank < strengths.size() &&
           strengths[rank] > kNoSignal * strengths[0])
      ++rank;
    for (Eigen::Index c = 0; rank < count && c < count; ++c)
      if (svd.matrixV().rightCols(count - rank).row(c).norm() > 0.05)
        result.dependent.push_back(
            static_cast<std::size_t>(determined[static_cast<std::size_t>(c)]));
  }

  // Computes the standard deviations of the values `inside` their bounds.
  void spread(const MatrixXd &all, const std::vector<Eigen::Index> &inside,
              LeastSquares &result) const {
    auto count = static_cast<Eigen::Index>(inside.size());
    auto rows = static_cast<double>(all.rows());
    if (all.rows() <= count)
      return;
    Decomposition parts = decompose(all, inside);
    double typical =
        result.rms * std::sqrt(rows / (rows - static_cast<double>(count)));
    for (Eigen::Index c = 0; c < count; ++c) {
      double sum = 0.0;
      for (Eigen::Index k = 0; k < count; ++k)
        sum += std::pow(
            parts.svd.matrixV()(c, k) / parts.svd.singularValues()[k], 2);
      auto i = static_cast<std::size_t>(inside[static_cast<std::size_t>(c)]);
      result.deviations[i] = typical * std::sqrt(sum) / parts.lengths[c] *
                             stretch(result.values[i], unknowns[i].scale);
    }
  }

  const std::vector<FitUnknown> &unknowns;
  const FitErrors &errorsOf;
  Eigen::Index size;
  VectorXd least, most; // the bounds on the values' scales
};

} // namespace

LeastSquares solveLeastSquares(const std::vector<FitUnknown> &unknowns,
                               const FitErrors &errors) {
  if (unknowns.empty()) {
    LeastSquares result;
    result.errors = errors({});
    double sum = 0.0;
    for (double error : result.errors)
      sum += error * error;
    result.rms = std::sqrt(
        sum / std::max<double>(1.0, static_cast<double>(result.errors.size())));
    return result;
  }
  return Solver(unknowns, errors).run();
}

} // namespace mtplan::planner
