//===- fit_machine.cpp - A machine from measurements ----------------------===//

#include "planner/fit/fit_machine.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "planner/cost/kernel_cost.h"
#include "planner/fit/least_squares.h"

namespace mtplan::planner {

namespace {

constexpr double kLeastShare = 1e-3;
constexpr double kLeastDelay = 1e-3, kMostDelay = 1e5; // us
constexpr double kLeastRate = 1e-3, kMostRate = 1e6;   // GB/s

// Returns the highest measured share of the peak among products in `precision`,
// limited to [0.1, 1].
double bestShare(const Measurements &measured, Precision precision) {
  double best = 0.1;
  const Machine &machine = measured.machine;
  double peak = productPeak(machine.device, precision).value;
  for (const Measurement &row : measured.rows)
    if (row.kind == MeasuredKind::product &&
        row.precision.value_or(machine.defaultPrecision) == precision)
      best = std::max(best, 2 * row.m * row.n * row.k * row.batch /
                                row.seconds / peak);
  return std::min(best, 1.0);
}

// Returns the highest measured share of the device's memory bandwidth, limited
// to [0.1, 1].
double bestStream(const Measurements &measured) {
  double best = 0.1;
  for (const Measurement &row : measured.rows)
    if (row.kind == MeasuredKind::stream)
      best = std::max(best, row.bytes / row.seconds /
                                measured.machine.device.bandwidth.value);
  return std::min(best, 1.0);
}

// Returns the precision of the figure gemmFp32, gemmFp16 or gemmBf16.
Precision precisionOf(FigureKind kind) {
  return kind == FigureKind::gemmFp32   ? Precision::fp32
         : kind == FigureKind::gemmFp16 ? Precision::fp16
                                        : Precision::bf16;
}

FitUnknown unknownOf(const Figure &figure, const Measurements &measured) {
  auto share = [](std::vector<double> starts) {
    return FitUnknown{kLeastShare, 1.0, std::move(starts), FitScale::linear};
  };
  auto delay = [](double start, FitScale scale) {
    return FitUnknown{0.0, kMostDelay, {start}, scale};
  };
  switch (figure.kind) {
  case FigureKind::launch:
    return {kLeastDelay, kMostDelay, {2}, FitScale::linear};
  case FigureKind::bandwidthEfficiency:
    return share({bestStream(measured)});
  case FigureKind::elementwiseEfficiency:
    return share({0.9});
  case FigureKind::gemmEfficiency:
    return share({bestShare(measured, measured.machine.defaultPrecision)});
  case FigureKind::gemmFp32:
  case FigureKind::gemmFp16:
  case FigureKind::gemmBf16:
    return share({bestShare(measured, precisionOf(figure.kind))});
  case FigureKind::wave:
    return delay(2, FitScale::linear);
  case FigureKind::tileRate:
    return share({0.9, 0.75, 0.99, 0.6});
  case FigureKind::unaligned64:
    return share({0.7});
  case FigureKind::unaligned8:
    return share({0.3});
  case FigureKind::batched:
    return share({0.8});
  case FigureKind::levelBandwidth:
  case FigureKind::reductionBandwidth:
    return {kLeastRate, kMostRate, {100, 10, 1}, FitScale::logarithmic};
  case FigureKind::levelLatency:
  case FigureKind::reductionLatency:
    return delay(5, FitScale::root);
  case FigureKind::levelBase:
    return delay(5, FitScale::linear);
  }
  return {};
}

// Returns a reference to the machine's value of the figure, in SI units.
double &fieldOf(Machine &machine, const Figure &figure) {
  Device &device = machine.device;
  auto level = [&]() -> NetworkLevel & {
    return machine.levels.at(figure.index);
  };
  switch (figure.kind) {
  case FigureKind::launch:
    return device.launch.value;
  case FigureKind::bandwidthEfficiency:
    return device.bandwidthEfficiency;
  case FigureKind::elementwiseEfficiency:
    return device.elementwiseEfficiency;
  case FigureKind::gemmEfficiency:
    return device.gemmEfficiency;
  case FigureKind::gemmFp32:
  case FigureKind::gemmFp16:
  case FigureKind::gemmBf16:
    return device.ownGemmEfficiency[storedAs(precisionOf(figure.kind))];
  case FigureKind::wave:
    return device.wave.value;
  case FigureKind::unaligned64:
    return device.products.unaligned64;
  case FigureKind::unaligned8:
    return device.products.unaligned8;
  case FigureKind::batched:
    return device.products.batched;
  case FigureKind::tileRate:
    return device.tiles.at(figure.index).rate;
  case FigureKind::levelBandwidth:
    return level().bandwidth.value;
  case FigureKind::levelLatency:
    return level().latency.value;
  case FigureKind::levelBase:
    return level().base.value;
  case FigureKind::reductionBandwidth:
    return level().reductionBandwidth.value;
  case FigureKind::reductionLatency:
    break;
  }
  return level().reductionLatency.value;
}

void setFigure(Machine &machine, const Figure &figure, double value) {
  const std::string unit = unitOf(figure.kind);
  fieldOf(machine, figure) = value * (unit == "us"     ? 1e-6
                                      : unit == "GB/s" ? 1e9
                                                       : 1.0);
}

// Returns a text that names the measurements that determine the figure.
std::string adviceOf(const Figure &figure, const Machine &machine) {
  auto reaching = [&] {
    const NetworkLevel &level = machine.levels.at(figure.index);
    std::string inner =
        figure.index > 0
            ? " more than " +
                  std::to_string(machine.levels[figure.index - 1].ranks)
            : " 2 or more";
    return "over" + inner + " ranks, which reach \"" + level.name + '"';
  };
  switch (figure.kind) {
  case FigureKind::launch:
    return "launches: some thousand kernels that do nothing";
  case FigureKind::bandwidthEfficiency:
    return "stream: a copy of 1 GB and more";
  case FigureKind::elementwiseEfficiency:
    return "elementwise: a norm or an activation over 1 GB and more";
  case FigureKind::gemmEfficiency:
    return "products: large ones, m = n = k = 8192";
  case FigureKind::gemmFp32:
  case FigureKind::gemmFp16:
  case FigureKind::gemmBf16:
    return std::string("products: large ones with \"precision\": \"") +
           nameOf(precisionOf(figure.kind)) + '"';
  case FigureKind::wave:
    return "products: with few tiles and different k, m = n = 1024 and k from "
           "128 to 16384";
  case FigureKind::tileRate: {
    const Tile &tile = machine.device.tiles.at(figure.index);
    return "products: small ones for which the " + std::to_string(tile.m) +
           " x " + std::to_string(tile.n) +
           " tile is the fastest, m = " + std::to_string(tile.m) +
           " and n a multiple of " + std::to_string(tile.n) +
           ", at most one tile per unit";
  }
  case FigureKind::unaligned64:
    return "products: with n or k a multiple of 8 and not of 64, n = 4104";
  case FigureKind::unaligned8:
    return "products: with n or k no multiple of 8, n = 4100";
  case FigureKind::batched:
    return "products: batched ones, batch = 64, m = n = 1024, k = 128";
  case FigureKind::levelBandwidth:
    return "collectives: of at least 100 MB " + reaching();
  case FigureKind::levelLatency:
    return "collectives: of 1 KB to 10 MB " + reaching() +
           ", by groups of different size";
  case FigureKind::levelBase:
    return "collectives: of 1 KB to 10 MB " + reaching() +
           ", all_gather beside all_reduce";
  case FigureKind::reductionBandwidth:
    return "collectives: all_reduce of at least 100 MB " + reaching() +
           ", summed by the switch";
  case FigureKind::reductionLatency:
    return "collectives: all_reduce of 1 KB to 10 MB " + reaching() +
           ", summed by the switch";
  }
  return {};
}

// Rounds to four significant digits; a fit determines no more.
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
    // No measurement depends on both the device and the network.
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
        refuse(f, "no measurement determines it");
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
    if (!isDetermined(solved, which, rows.size()))
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

  // Returns whether the rows determine every figure; adds an error for each
  // undetermined figure.
  bool isDetermined(const LeastSquares &solved,
                    const std::vector<std::size_t> &which, std::size_t rows) {
    std::size_t before = errors.size();
    for (std::size_t i : solved.idle)
      refuse(which[i], "no measurement depends on it");
    std::string together;
    for (std::size_t i : solved.dependent)
      together += (together.empty() ? "" : " and ") +
                  measured.figures[which[i]].pointer;
    for (std::size_t i : solved.dependent)
      refuse(which[i], solved.dependent.size() == 1
                           ? "no measurement depends on it at its best value"
                           : "the measurements do not distinguish " + together);
    if (errors.size() == before && rows < which.size())
      errors.push_back(measured.figures[which.front()].pointer + ": " +
                       std::to_string(which.size()) +
                       " figures of this kind cannot be fitted to " +
                       std::to_string(rows) +
                       " measurements; give the values of some figures, or "
                       "measure more");
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

bool isOfNetwork(FigureKind kind) { return kind >= FigureKind::levelBandwidth; }

const char *unitOf(FigureKind kind) {
  switch (kind) {
  case FigureKind::launch:
  case FigureKind::wave:
  case FigureKind::levelLatency:
  case FigureKind::levelBase:
  case FigureKind::reductionLatency:
    return "us";
  case FigureKind::levelBandwidth:
  case FigureKind::reductionBandwidth:
    return "GB/s";
  default:
    return "";
  }
}

std::optional<MachineFit> fitMachine(Measurements measured,
                                     std::vector<std::string> &errors) {
  return MachineFitter(std::move(measured), errors).run();
}

} // namespace mtplan::planner
