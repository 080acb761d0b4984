//===- fit_machine.cpp - A machine from measurements ----------------------===//

#include "planner/fit/fit_machine.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "planner/fit/figures.h"

namespace mtplan::planner {

namespace {

// Rounds to four digits, which is what a fit can determine and people read.
double rounded(double value) {
  if (value == 0.0 || !std::isfinite(value))
    return value;
  double unit = std::pow(10.0, std::floor(std::log10(std::abs(value))) - 3);
  // Negative powers of ten are not exact; their inverses are.
  return unit < 1
             ? std::round(value * std::round(1 / unit)) / std::round(1 / unit)
             : std::round(value / unit) * unit;
}

auto orderOf(const Measurement &row) {
  return std::tuple(row.kind, row.count, row.bytes, row.m, row.n, row.k,
                    row.batch, row.precision, row.ranks, row.stride,
                    row.seconds);
}

class MachineFitter {
public:
  MachineFitter(Measurements m, std::vector<std::string> &e)
      : measured(std::move(m)), errors(e) {
    std::ranges::stable_sort(measured.rows, {}, orderOf);
    fit.machine = measured.machine;
    fit.figures.resize(measured.figures.size());
  }

  std::optional<MachineFit> run() {
    std::size_t before = errors.size();
    // The network's figures and the device's are fitted apart.
    for (bool network : {false, true})
      fitPart(network);
    if (errors.size() != before)
      return std::nullopt;
    addResiduals();
    return std::move(fit);
  }

private:
  void fitPart(bool network) {
    std::vector<const Measurement *> rows;
    for (const Measurement &row : measured.rows)
      if (isCollective(row.kind) == network)
        rows.push_back(&row);
    std::vector<std::size_t> which;
    std::vector<FitUnknown> unknowns;
    for (std::size_t f = 0; f < measured.figures.size(); ++f)
      if (isOfNetwork(measured.figures[f].kind) == network) {
        which.push_back(f);
        unknowns.push_back(unknownOf(measured.figures[f], measured));
      }
    if (which.empty())
      return;
    if (rows.empty()) {
      for (std::size_t f : which)
        refuse(f, "nothing was measured that tells it");
      return;
    }
    Machine trial = measured.machine;
    FitErrors errorsOf = [&](const std::vector<double> &values) {
      for (std::size_t i = 0; i < which.size(); ++i)
        setFigure(trial, measured.figures[which[i]], values[i]);
      std::vector<double> left;
      left.reserve(rows.size());
      for (const Measurement *row : rows)
        left.push_back(std::log(row->predicted(trial) / row->seconds));
      return left;
    };
    LeastSquares solved = solveLeastSquares(unknowns, errorsOf);
    if (!isTold(solved, which, rows.size()))
      return;
    for (std::size_t i = 0; i < which.size(); ++i) {
      FittedFigure &found = fit.figures[which[i]];
      found = {measured.figures[which[i]], rounded(solved.values[i]),
               solved.deviations[i], solved.atBound[i]};
      setFigure(fit.machine, found.figure, found.value);
    }
  }

  void refuse(std::size_t figure, const std::string &why) {
    const Figure &one = measured.figures[figure];
    errors.push_back(one.pointer + ": " + why + "; measure " +
                     adviceOf(one, measured.machine));
  }

  // Returns whether the rows determine every figure; notes those that they do
  // not.
  bool isTold(const LeastSquares &solved, const std::vector<std::size_t> &which,
              std::size_t rows) {
    std::size_t before = errors.size();
    for (std::size_t i : solved.idle)
      refuse(which[i], "no measurement depends on it");
    std::string together;
    for (std::size_t i : solved.entangled)
      together += (together.empty() ? "" : " and ") +
                  measured.figures[which[i]].pointer;
    for (std::size_t i : solved.entangled)
      refuse(which[i],
             solved.entangled.size() == 1
                 ? "no measurement depends on it at its best value"
                 : "the measurements do not tell " + together + " apart");
    if (errors.size() == before && rows < which.size())
      errors.push_back(measured.figures[which.front()].pointer + ": " +
                       std::to_string(which.size()) +
                       " figures of this kind are to be found from " +
                       std::to_string(rows) +
                       " measurements; give some of them, or measure more");
    return errors.size() == before;
  }

  void addResiduals() {
    for (const Measurement &row : measured.rows) {
      if (fit.residuals.empty() || fit.residuals.back().kind != row.kind)
        fit.residuals.push_back({row.kind, 0, 0.0, 0.0, "", ""});
      FitResidual &residual = fit.residuals.back();
      double error = row.predicted(fit.machine) / row.seconds - 1;
      ++residual.rows;
      residual.rms += error * error;
      if (residual.rows == 1 || std::abs(error) > std::abs(residual.worst)) {
        residual.worst = error;
        residual.worstPointer = row.pointer;
        residual.worstRow = row.describe();
      }
    }
    for (FitResidual &residual : fit.residuals)
      residual.rms = std::sqrt(residual.rms / residual.rows);
  }

  Measurements measured;
  std::vector<std::string> &errors;
  MachineFit fit;
};

} // namespace

std::optional<MachineFit> fitMachine(Measurements measured,
                                     std::vector<std::string> &errors) {
  return MachineFitter(std::move(measured), errors).run();
}

} // namespace mtplan::planner
