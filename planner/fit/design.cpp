//===- design.cpp - What measurements say about figures -------------------===//

#include "planner/fit/design.h"

#include <Eigen/Dense>
#include <cmath>

namespace mtplan::planner {

namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

MatrixXd matrixOf(const Slopes &slopes) {
  MatrixXd matrix(slopes.size(), slopes.empty() ? 0 : slopes.front().size());
  for (Eigen::Index r = 0; r < matrix.rows(); ++r)
    matrix.row(r) = Eigen::Map<const Eigen::RowVectorXd>(
        slopes[std::size_t(r)].data(), matrix.cols());
  return matrix;
}

/// Updates a covariance with one measurement after another.
class Estimate {
public:
  explicit Estimate(const Slopes &all)
      : slopes(matrixOf(all)),
        covariance(MatrixXd::Identity(slopes.cols(), slopes.cols())) {}

  // With the covariance C, a measurement with the slopes j changes the sum of
  // the variances of all measurements, tr(J C J'), by -|J C j'|^2 / (1 + j C
  // j') (Sherman and Morrison 1950).
  double gainOf(std::size_t measurement) const {
    const auto [known, variance] = of(measurement);
    return (slopes * known).squaredNorm() / (1 + variance);
  }

  void add(std::size_t measurement) {
    const auto [known, variance] = of(measurement);
    covariance -= known * known.transpose() / (1 + variance);
  }

private:
  std::pair<VectorXd, double> of(std::size_t measurement) const {
    const VectorXd row = slopes.row(Eigen::Index(measurement)).transpose();
    VectorXd known = covariance * row;
    return {known, row.dot(known)};
  }

  MatrixXd slopes, covariance;
};

} // namespace

std::vector<double> deviationsAfter(const Slopes &measured) {
  const MatrixXd slopes = matrixOf(measured);
  const MatrixXd information =
      MatrixXd::Identity(slopes.cols(), slopes.cols()) +
      slopes.transpose() * slopes;
  const MatrixXd covariance = information.inverse();
  std::vector<double> deviations;
  for (Eigen::Index f = 0; f < covariance.rows(); ++f)
    deviations.push_back(std::sqrt(covariance(f, f)));
  return deviations;
}

std::vector<std::size_t>
chooseMeasurements(const std::vector<Slopes> &scenarios,
                   const std::vector<std::size_t> &known,
                   std::vector<std::size_t> offered, std::size_t count) {
  std::vector<Estimate> estimates(scenarios.begin(), scenarios.end());
  auto add = [&](std::size_t measurement) {
    for (Estimate &estimate : estimates)
      estimate.add(measurement);
  };
  for (std::size_t measurement : known)
    add(measurement);
  std::vector<std::size_t> chosen;
  while (chosen.size() < count && !offered.empty()) {
    std::size_t best = 0;
    double most = -1.0;
    for (std::size_t i = 0; i < offered.size(); ++i) {
      double gain = 0.0;
      for (const Estimate &estimate : estimates)
        gain += estimate.gainOf(offered[i]);
      if (gain > most) {
        most = gain;
        best = i;
      }
    }
    add(offered[best]);
    chosen.push_back(offered[best]);
    offered.erase(offered.begin() + std::ptrdiff_t(best));
  }
  return chosen;
}

} // namespace mtplan::planner
