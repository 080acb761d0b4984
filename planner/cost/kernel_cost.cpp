//===- kernel_cost.cpp - Time of products and attention -------------------===//

#include "planner/cost/kernel_cost.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "planner/integers.h"

namespace mtplan::planner {

double LocalWork::shardsOf(int factor, bool contiguous) const {
  double shards = 1;
  for (std::size_t axis = 0; strategy && axis < strategy->axes.size(); ++axis)
    if (strategy->axes[axis] == factor &&
        !(contiguous && roleOf(mesh->axes[axis]) == AxisRole::context))
      shards *= mesh->axes[axis].size;
  return shards;
}

double LocalWork::extentOf(int factor) const {
  return static_cast<double>(op.factors[at(factor)].size) / shardsOf(factor);
}

double LocalWork::extentOf(const std::vector<int> &factors) const {
  double extent = 1;
  for (int factor : factors)
    extent *= extentOf(factor);
  return extent;
}

double LocalWork::flops() const {
  double flops = op.flops.value;
  for (std::size_t f = 0; f < op.factors.size(); ++f) {
    auto factor = static_cast<int>(f);
    flops *= (1 + op.factors[f].skew * (1 - 1 / shardsOf(factor, true))) /
             shardsOf(factor);
  }
  return flops;
}

double LocalWork::bytesOf(const Use &use) const {
  const Tensor &tensor = tensors[at(use.tensor)];
  double bytes = tensorBytes(tensor.shape, tensor.elementBytes);
  for (int factor : use.factors)
    if (factor >= 0)
      bytes /= shardsOf(factor);
  return bytes;
}

double LocalWork::traffic() const {
  double total = 0;
  for (const Use &use : op.results)
    total += bytesOf(use);
  for (const Use &use : op.operands) {
    double bytes = bytesOf(use);
    total +=
        use.lookedUp ? std::min(bytes, bytesOf(op.results.front())) : bytes;
  }
  return total;
}

double LocalWork::largest() const {
  double most = 0;
  for (const std::vector<Use> *uses : {&op.operands, &op.results})
    for (const Use &use : *uses)
      most = std::max(most, bytesOf(use));
  return most;
}

namespace {

// Compute units split a contraction into ranges of at least this many elements
// of k. If ranges were shorter, adding the partial tiles would take longer than
// the split saves.
constexpr double kShortestShare = 512;

// Tensor cores reach the full rate only if rows are aligned to kLineBytes, and
// are used only if rows are aligned to kVectorBytes.
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

// Holds the numbers of waves in the time of a product: `work` multiplies the
// time of a full wave's arithmetic, and `fixed` the time to fill and drain a
// wave. The fixed time depends on the number of tiles alone. In the model of
// docs/studies/step-time, the fixed time also depends on the split of the
// contraction, and falls as the contraction gets longer. The two models agree
// on long contractions.
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

// A fused kernel computes the scores in square blocks of this many positions
// per side. A block on the diagonal is computed in full although half of it is
// masked.
constexpr double kDiagonalBlock = 128;

// Returns the width of an element relative to the 16-bit elements for which the
// software's figures hold.
double widthOf(Precision precision) { return bytesOf(precision) / 2.0; }

bool isBackward(const Op &op) { return op.phase == Phase::backward; }

// Returns the ratio of the fused kernel's arithmetic to the operator's, which
// exceeds 1 because of padded heads and of blocks on the diagonal.
double excess(const AttentionShape &shape, const AttentionKernel &kernel) {
  double padded = paddedHead(kernel, shape.headSize) / shape.headSize;
  return padded * (shape.causal ? 1 + kDiagonalBlock / shape.keys : 1.0);
}

double fusedSeconds(const Op &op, double flops, const Device &device,
                    const Software &software, Precision precision) {
  AttentionRate rate =
      attentionRateOf(software, device, precision, op.variant == kDropout);
  double share = isBackward(op) ? rate.backward : rate.forward;
  return flops / (productPeak(device, precision).value * share);
}

double copySeconds(const Op &op, const AttentionShape &shape,
                   const Device &device, const Software &software,
                   Precision precision) {
  const AttentionKernel &kernel = software.attention;
  double bytes = isBackward(op) ? kernel.copyBackward : kernel.copyForward;
  return bytes * widthOf(precision) * shape.heads * shape.queries *
         shape.headSize / device.passRate().value;
}

double scoreSeconds(const Op &op, const AttentionShape &shape, bool fused,
                    const Device &device, const Software &software,
                    Precision precision) {
  const ScoreTraffic &traffic = software.attention.scores;
  double bytes = traffic.dropout;
  if (isBackward(op))
    bytes += fused ? traffic.fusedBackward : traffic.unfusedBackward;
  else
    bytes += fused ? traffic.fusedForward : traffic.unfusedForward;
  return bytes * widthOf(precision) * shape.scores() / device.passRate().value;
}

bool softmaxIsFused(const AttentionShape &shape, const ScoreTraffic &traffic) {
  return std::fmod(shape.heads, traffic.fusedMultiple) == 0.0 &&
         shape.keys <= traffic.fusedLongest;
}

// Returns the time of the two products queries * keys and probabilities *
// values, in seconds. Backward replaces each of them by two products, one per
// operand.
double productSeconds(const Op &op, const AttentionShape &shape,
                      const Device &device, Precision precision) {
  auto seconds = [&](double n, double k) {
    ProductShape product{shape.queries, n, k, shape.heads};
    double bytes = bytesOf(precision) * shape.heads *
                   (shape.queries * k + k * n + shape.queries * n);
    return std::max(
        productTime(product, device, precision, device.products.batched).value,
        bytes / device.streamRate().value);
  };
  double both =
      seconds(shape.keys, shape.headSize) + seconds(shape.headSize, shape.keys);
  return isBackward(op) ? 2 * both : both;
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

Flops fusedFlops(const AttentionShape &shape, bool backward,
                 const AttentionKernel &kernel) {
  // Forward has two products, and backward has five. A causal mask halves their
  // arithmetic.
  double products = backward ? 5 : 2;
  return Flops{products * 2 * shape.scores() * shape.headSize *
               (shape.causal ? 0.5 : 1.0) * excess(shape, kernel)};
}

std::optional<AttentionShape> attentionShapeOf(const Op &op,
                                               const LocalWork &work) {
  AttentionShape shape;
  int found = 0;
  for (std::size_t f = 0; f < op.factors.size(); ++f) {
    const Factor &factor = op.factors[f];
    double extent = work.extentOf(static_cast<int>(f));
    if (factor.name == "b" || factor.name == "g" || factor.name == "r")
      shape.heads *= extent;
    else if (factor.name == "s")
      shape.queries = extent, shape.causal = factor.skew > 0;
    else if (factor.name == "k")
      shape.keys = extent;
    else if (factor.name == "d")
      shape.headSize = extent;
    else
      continue;
    ++found;
  }
  if (found != 6)
    return std::nullopt;
  return shape;
}

Seconds attentionTime(const Op &op, const LocalWork &work, const Device &device,
                      const Software &software, Precision precision) {
  std::optional<AttentionShape> shape = attentionShapeOf(op, work);
  double memory = work.traffic() / device.streamRate().value;
  if (!shape)
    return Seconds{std::max(
        memory, fusedSeconds(op, work.flops(), device, software, precision))};
  double copies = copySeconds(op, *shape, device, software, precision);
  if (software.attention.keepsScores)
    return Seconds{
        productSeconds(op, *shape, device, precision) +
        scoreSeconds(op, *shape,
                     softmaxIsFused(*shape, software.attention.scores), device,
                     software, precision) +
        copies};
  double flops = work.flops() * excess(*shape, software.attention);
  return Seconds{
      std::max(memory, fusedSeconds(op, flops, device, software, precision)) +
      copies};
}

Seconds attentionLowerBound(const Op &op, const LocalWork &unsharded,
                            const Device &device, const Software &software,
                            Precision precision) {
  std::optional<AttentionShape> shape = attentionShapeOf(op, unsharded);
  if (!shape || !software.attention.keepsScores)
    return attentionTime(op, unsharded, device, software, precision);
  double products = isBackward(op) ? 4 : 2;
  double flops = products * 2 * shape->scores() * shape->headSize;
  // The local number of heads decides whether the softmax is fused, and any
  // number is possible, so the bound uses the cheaper variant.
  double passes = scoreSeconds(op, *shape, false, device, software, precision);
  if (shape->keys <= software.attention.scores.fusedLongest)
    passes = std::min(
        passes, scoreSeconds(op, *shape, true, device, software, precision));
  return productLowerBound(Flops{flops}, device, precision,
                           device.products.batched) +
         Seconds{passes + copySeconds(op, *shape, device, software, precision)};
}

Bytes savedScores(const Op &op, const LocalWork &work, const Software &software,
                  Precision precision) {
  if (op.opClass != OpClass::attention || isBackward(op) ||
      !software.attention.keepsScores)
    return {};
  std::optional<AttentionShape> shape = attentionShapeOf(op, work);
  if (!shape)
    return {};
  return Bytes{software.attention.scores.saved * widthOf(precision) *
               shape->scores()};
}

} // namespace mtplan::planner
