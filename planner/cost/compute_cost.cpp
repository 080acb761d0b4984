//===- compute_cost.cpp - Time of one operator on one rank ----------------===//

#include "planner/cost/compute_cost.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace mtplan::planner {

namespace {

// Ranks that share `factor` under `strategy`.
double piecesOf(int factor, const Strategy &strategy, const Mesh &mesh) {
  double pieces = 1;
  for (std::size_t axis = 0; axis < strategy.axes.size(); ++axis)
    if (strategy.axes[axis] == factor)
      pieces *= mesh.axes[axis].size;
  return pieces;
}

// Product of the local sizes of `factors`.
double extentOf(const std::vector<int> &factors, const Op &op,
                const Strategy &strategy, const Mesh &mesh) {
  double extent = 1;
  for (int factor : factors)
    extent *=
        static_cast<double>(op.factors[static_cast<std::size_t>(factor)].size) /
        piecesOf(factor, strategy, mesh);
  return extent;
}

double bytesOf(const Use &use, const std::vector<Tensor> &tensors) {
  const Tensor &tensor = tensors[static_cast<std::size_t>(use.tensor)];
  double bytes = tensor.elementBytes;
  for (std::int64_t size : tensor.shape)
    bytes *= static_cast<double>(size);
  return bytes;
}

// Bytes of the local pieces of all operands and results that pass through
// memory; `pieces` is the number of ranks that share a factor.
template <typename Pieces>
double trafficOf(const Op &op, const std::vector<Tensor> &tensors,
                 Pieces pieces) {
  auto local = [&](const Use &use) {
    double bytes = bytesOf(use, tensors);
    for (int factor : use.factors)
      if (factor >= 0)
        bytes /= pieces(factor);
    return bytes;
  };
  double total = 0;
  for (const Use &use : op.results)
    total += local(use);
  for (const Use &use : op.operands) {
    double bytes = local(use);
    total += use.lookedUp ? std::min(bytes, local(op.results.front())) : bytes;
  }
  return total;
}

double localBytes(const Op &op, const Strategy &strategy,
                  const std::vector<Tensor> &tensors, const Mesh &mesh) {
  return trafficOf(op, tensors, [&](int factor) {
    return piecesOf(factor, strategy, mesh);
  });
}

// Work of the busiest rank.
double localFlops(const Op &op, const Strategy &strategy, const Mesh &mesh) {
  double flops = op.flops.value;
  for (std::size_t f = 0; f < op.factors.size(); ++f) {
    double pieces = piecesOf(static_cast<int>(f), strategy, mesh);
    flops *= (1 + op.factors[f].skew * (1 - 1 / pieces)) / pieces;
  }
  return flops;
}

// Time that the device's units spend over the time they would spend if the
// output were cut into exactly as many full tiles as keep them all busy; >= 1.
double quantisation(const Op &op, const Strategy &strategy, const Mesh &mesh,
                    const Device &device) {
  double m = extentOf(op.m, op, strategy, mesh);
  double n = extentOf(op.n, op, strategy, mesh);
  double k = extentOf(op.k, op, strategy, mesh);
  double batch = extentOf(op.batch, op, strategy, mesh);
  double tiles =
      std::ceil(m / device.tileM) * std::ceil(n / device.tileN) * batch;
  double waves = std::ceil(tiles / device.units);
  double area = waves * device.units * device.tileM * device.tileN;
  // Units that one wave leaves idle share the contraction (split-K), as long as
  // a share outweighs the partial tile it has to write.
  double sharers = std::max(1.0, std::floor(device.units / tiles));
  double shortest = std::min<double>(k, device.tileM + device.tileN);
  double share = std::max(k / sharers, shortest);
  return area * share / (m * n * batch * k);
}

// Rate of products: the precision's own, or single precision's where the device
// has no other.
double peakOf(const Device &device, Precision precision) {
  std::optional<FlopsPerSec> peak = device.peak(precision);
  if (!peak)
    peak = device.fp32;
  assert(peak && "the device has no rate for this precision");
  return peak->value;
}

double memoryRate(const Device &device) {
  return device.bandwidth.value * device.bandwidthEfficiency;
}

double productRate(const Op &op, const Device &device, Precision precision) {
  return peakOf(device, precision) * (op.opClass == OpClass::gemm
                                          ? device.gemmEfficiency
                                          : device.attentionEfficiency);
}

} // namespace

Seconds computeTime(const Op &op, const Strategy &strategy,
                    const std::vector<Tensor> &tensors, const Mesh &mesh,
                    const Machine &machine, Precision precision) {
  const Device &device = machine.device;
  double time = localBytes(op, strategy, tensors, mesh) / memoryRate(device);
  if (op.opClass != OpClass::memory) {
    double work = localFlops(op, strategy, mesh);
    if (op.opClass == OpClass::gemm)
      work *= quantisation(op, strategy, mesh, device);
    time = std::max(time, work / productRate(op, device, precision));
  }
  return Seconds{time} + device.launch;
}

Seconds computeFloor(const Op &op, const std::vector<Tensor> &tensors,
                     int ranks, const Machine &machine, Precision precision) {
  assert(ranks >= 1);
  const Device &device = machine.device;
  double bytes = trafficOf(op, tensors, [](int) { return 1.0; });
  double time = bytes / memoryRate(device);
  if (op.opClass != OpClass::memory)
    time = std::max(time, op.flops.value / productRate(op, device, precision));
  return Seconds{time / ranks} + device.launch;
}

} // namespace mtplan::planner
