//===- product_cost.cpp - Time of a matrix product on one device ----------===//

#include "planner/cost/product_cost.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace mtplan::planner {

namespace {

// Units split a contraction while each share is at least this long; below,
// writing and adding the partial tiles costs what the split gains.
constexpr double kShortestShare = 512;

// The alignment at which tensor cores are fed at full rate, and at all.
constexpr double kLineBytes = 128, kVectorBytes = 16;

bool isMultiple(double extent, double of) {
  return std::fmod(extent, of) == 0.0;
}

double alignment(const ProductShape &shape, const Device &device,
                 Precision precision) {
  auto aligned = [&](double bytes) {
    double elements = bytes / bytesOf(precision);
    return isMultiple(shape.n, elements) && isMultiple(shape.k, elements);
  };
  if (!aligned(kVectorBytes))
    return std::min(device.products.unaligned8, device.products.unaligned64);
  return aligned(kLineBytes) ? 1.0 : device.products.unaligned64;
}

// Waves of arithmetic, and of filling and draining. Units that a single wave
// leaves idle split contractions that are long enough; what a wave has to fill
// follows the tiles alone. (In the study it follows the sharers, which takes
// less time for a longer contraction; the two agree on long ones.)
struct Waves {
  double work = 1.0, fixed = 1.0;
};

Waves wavesOf(const ProductShape &shape, const Tile &tile, int units) {
  double tiles =
      std::ceil(shape.m / tile.m) * std::ceil(shape.n / tile.n) * shape.batch;
  double idle = std::floor(units / tiles);
  if (idle <= 1.0)
    return {std::ceil(tiles / units), std::ceil(tiles / units)};
  double longEnough = std::max(1.0, shape.k / kShortestShare);
  return {1.0 / std::min(idle, longEnough), 1.0 / idle};
}

} // namespace

FlopsPerSec productPeak(const Device &device, Precision precision) {
  std::optional<FlopsPerSec> peak = device.peak(precision);
  if (!peak && precision == Precision::fp8)
    peak = device.bf16;
  if (!peak)
    peak = device.fp32;
  assert(peak && "the device has no rate for this precision");
  return *peak;
}

FlopsPerSec productRate(const Device &device, Precision precision) {
  double share = device.gemmEfficiency;
  if (precision == Precision::fp8 && device.fp8)
    share = device.gemmEfficiencyFp8;
  else if (double own = device.ownGemmEfficiency[storedAs(precision)]; own > 0)
    share = own;
  return productPeak(device, precision) * share;
}

Seconds productTime(const ProductShape &shape, const Device &device,
                    Precision precision, double relative) {
  assert(!device.tiles.empty() && relative > 0);
  double rate = productRate(device, precision).value * relative;
  double best = std::numeric_limits<double>::infinity();
  double firstArea = double(device.tiles.front().m) * device.tiles.front().n;
  for (const Tile &tile : device.tiles) {
    double area = double(tile.m) * tile.n;
    double work = device.units * area * 2 * shape.k / (tile.rate * rate);
    double fixed = device.wave.value * area / firstArea;
    Waves waves = wavesOf(shape, tile, device.units);
    best = std::min(best, waves.work * work + waves.fixed * fixed);
  }
  return Seconds{best / alignment(shape, device, precision)};
}

Seconds productLowerBound(Flops flops, const Device &device,
                          Precision precision, double relative) {
  double fastest = 0;
  for (const Tile &tile : device.tiles)
    fastest = std::max(fastest, tile.rate);
  return flops / (productRate(device, precision) * (fastest * relative));
}

} // namespace mtplan::planner
