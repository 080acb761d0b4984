//===- attention_cost.cpp - Time of attention on one rank -----------------===//

#include "planner/cost/attention_cost.h"

#include <algorithm>
#include <cmath>

#include "planner/cost/product_cost.h"

namespace mtplan::planner {

namespace {

// The positions of a block on the diagonal that a fused kernel computes
// although half of them are masked.
constexpr double kDiagonalBlock = 128;

// The software's figures are for 16-bit elements.
double widthOf(Precision precision) { return bytesOf(precision) / 2.0; }

bool isBackward(const Op &op) { return op.phase == Phase::backward; }

// Returns the fused kernel's arithmetic over the operator's: padded heads, and
// the blocks that the diagonal crosses.
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

// Returns the time of the passes over the scores.
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

// Returns the time of queries times keys and of probabilities times values;
// backward computes both for either operand.
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

Flops fusedFlops(const AttentionShape &shape, bool backward,
                 const AttentionKernel &kernel) {
  // Forward has two products, backward five; a causal mask halves them.
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
  // Heads may divide on one rank though they do not in total, or the reverse.
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
