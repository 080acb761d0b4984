//===- compute_cost.cpp - Time of one operator on one rank ----------------===//

#include "planner/cost/compute_cost.h"

#include <algorithm>
#include <cassert>

#include "planner/cost/product_cost.h"

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

double memoryRate(const Op &op, const Device &device) {
  return (op.opClass == OpClass::memory ? device.passRate()
                                        : device.streamRate())
      .value;
}

double attentionRate(const Device &device, Precision precision) {
  return productPeak(device, precision).value * device.attentionEfficiency;
}

double gemmSeconds(const Op &op, const Strategy &strategy, const Mesh &mesh,
                   const Device &device, Precision precision) {
  ProductShape shape{extentOf(op.m, op, strategy, mesh),
                     extentOf(op.n, op, strategy, mesh),
                     extentOf(op.k, op, strategy, mesh),
                     extentOf(op.batch, op, strategy, mesh)};
  return productTime(shape, device, precision).value *
         (localFlops(op, strategy, mesh) / shape.flops());
}

} // namespace

Seconds computeTime(const Op &op, const Strategy &strategy,
                    const std::vector<Tensor> &tensors, const Mesh &mesh,
                    const Machine &machine, Precision precision) {
  const Device &device = machine.device;
  double time =
      localBytes(op, strategy, tensors, mesh) / memoryRate(op, device);
  if (op.opClass == OpClass::gemm)
    time = std::max(time, gemmSeconds(op, strategy, mesh, device, precision));
  else if (op.opClass == OpClass::attention)
    time = std::max(time, localFlops(op, strategy, mesh) /
                              attentionRate(device, precision));
  return Seconds{time} + device.launch;
}

Seconds computeFloor(const Op &op, const std::vector<Tensor> &tensors,
                     int ranks, const Machine &machine, Precision precision) {
  assert(ranks >= 1);
  const Device &device = machine.device;
  double bytes = trafficOf(op, tensors, [](int) { return 1.0; });
  double time = bytes / memoryRate(op, device);
  if (op.opClass == OpClass::gemm)
    time = std::max(time, productFloor(op.flops, device, precision).value);
  else if (op.opClass == OpClass::attention)
    time = std::max(time, op.flops.value / attentionRate(device, precision));
  return Seconds{time / ranks} + device.launch;
}

} // namespace mtplan::planner
