//===- figures.cpp - Figures of a machine that can be measured ------------===//

#include "planner/fit/figures.h"

#include <algorithm>

#include "planner/cost/product_cost.h"

namespace mtplan::planner {

namespace {

constexpr double kMicro = 1e-6, kGB = 1e9;
constexpr double kLeastShare = 1e-3;
constexpr double kLeastDelay = 1e-3, kMostDelay = 1e5; // us
constexpr double kLeastRate = 1e-3, kMostRate = 1e6;   // GB/s

NetworkLevel &levelOf(Machine &machine, const Figure &figure) {
  return machine.levels.at(figure.index);
}

// Returns the highest share that the products in `precision` can reach.
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

// Returns the highest share of memory's peak that the passes can reach.
double bestStream(const Measurements &measured) {
  double best = 0.1;
  for (const Measurement &row : measured.rows)
    if (row.kind == MeasuredKind::stream)
      best = std::max(best, row.bytes / row.seconds /
                                measured.machine.device.bandwidth.value);
  return std::min(best, 1.0);
}

} // namespace

FigureKind deviceFigure(std::size_t key) {
  constexpr FigureKind kKinds[] = {FigureKind::launch,
                                   FigureKind::bandwidthEfficiency,
                                   FigureKind::elementwiseEfficiency,
                                   FigureKind::gemmEfficiency,
                                   FigureKind::gemmFp32,
                                   FigureKind::gemmFp16,
                                   FigureKind::gemmBf16,
                                   FigureKind::wave,
                                   FigureKind::unaligned64,
                                   FigureKind::unaligned8,
                                   FigureKind::batched};
  return kKinds[key];
}

FigureKind levelFigure(std::size_t key) {
  constexpr FigureKind kKinds[] = {
      FigureKind::levelBandwidth, FigureKind::levelLatency,
      FigureKind::levelBase, FigureKind::reductionBandwidth,
      FigureKind::reductionLatency};
  return kKinds[key];
}

std::optional<Precision> precisionOf(FigureKind kind) {
  switch (kind) {
  case FigureKind::gemmFp32:
    return Precision::fp32;
  case FigureKind::gemmFp16:
    return Precision::fp16;
  case FigureKind::gemmBf16:
    return Precision::bf16;
  default:
    return std::nullopt;
  }
}

bool isOfNetwork(FigureKind kind) { return kind >= FigureKind::levelBandwidth; }

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
    return share({bestShare(measured, *precisionOf(figure.kind))});
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

void setFigure(Machine &machine, const Figure &figure, double value) {
  Device &device = machine.device;
  switch (figure.kind) {
  case FigureKind::launch:
    device.launch = Seconds{value * kMicro};
    break;
  case FigureKind::bandwidthEfficiency:
    device.bandwidthEfficiency = value;
    break;
  case FigureKind::elementwiseEfficiency:
    device.elementwiseEfficiency = value;
    break;
  case FigureKind::gemmEfficiency:
    device.gemmEfficiency = value;
    break;
  case FigureKind::gemmFp32:
  case FigureKind::gemmFp16:
  case FigureKind::gemmBf16:
    device.ownGemmEfficiency[storedAs(*precisionOf(figure.kind))] = value;
    break;
  case FigureKind::wave:
    device.wave = Seconds{value * kMicro};
    break;
  case FigureKind::tileRate:
    device.tiles.at(figure.index).rate = value;
    break;
  case FigureKind::unaligned64:
    device.products.unaligned64 = value;
    break;
  case FigureKind::unaligned8:
    device.products.unaligned8 = value;
    break;
  case FigureKind::batched:
    device.products.batched = value;
    break;
  case FigureKind::levelBandwidth:
    levelOf(machine, figure).bandwidth = BytesPerSec{value * kGB};
    break;
  case FigureKind::levelLatency:
    levelOf(machine, figure).latency = Seconds{value * kMicro};
    break;
  case FigureKind::levelBase:
    levelOf(machine, figure).base = Seconds{value * kMicro};
    break;
  case FigureKind::reductionBandwidth:
    levelOf(machine, figure).reductionBandwidth = BytesPerSec{value * kGB};
    break;
  case FigureKind::reductionLatency:
    levelOf(machine, figure).reductionLatency = Seconds{value * kMicro};
    break;
  }
}

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
           nameOf(*precisionOf(figure.kind)) + '"';
  case FigureKind::wave:
    return "products: of few tiles and different depth, m = n = 1024 and k "
           "from 128 to 16384";
  case FigureKind::tileRate: {
    const Tile &tile = machine.device.tiles.at(figure.index);
    return "products: small ones that this tile of " + std::to_string(tile.m) +
           " x " + std::to_string(tile.n) +
           " is the best for, m = " + std::to_string(tile.m) +
           " and n a multiple of " + std::to_string(tile.n) +
           " up to one for every unit";
  }
  case FigureKind::unaligned64:
    return "products: with n or k a multiple of 8 and not of 64, n = 4104";
  case FigureKind::unaligned8:
    return "products: with n or k no multiple of 8, n = 4100";
  case FigureKind::batched:
    return "products: batched ones, batch = 64, m = n = 1024, k = 128";
  case FigureKind::levelBandwidth:
    return "collectives: of 100 MB and more " + reaching();
  case FigureKind::levelLatency:
    return "collectives: of 1 KB to 10 MB " + reaching() +
           ", by groups of different size";
  case FigureKind::levelBase:
    return "collectives: of 1 KB to 10 MB " + reaching() +
           ", all_gather beside all_reduce";
  case FigureKind::reductionBandwidth:
    return "collectives: all_reduce of 100 MB and more " + reaching() +
           ", summed by the switch";
  case FigureKind::reductionLatency:
    return "collectives: all_reduce of 1 KB to 10 MB " + reaching() +
           ", summed by the switch";
  }
  return {};
}

} // namespace mtplan::planner
