//===- local_work.cpp - One rank's share of an operator -------------------===//

#include "planner/cost/local_work.h"

#include <algorithm>

namespace mtplan::planner {

double LocalWork::shardsOf(int factor) const {
  double shards = 1;
  for (std::size_t axis = 0; strategy && axis < strategy->axes.size(); ++axis)
    if (strategy->axes[axis] == factor)
      shards *= mesh->axes[axis].size;
  return shards;
}

double LocalWork::runsOf(int factor) const {
  double runs = 1;
  for (std::size_t axis = 0; strategy && axis < strategy->axes.size(); ++axis)
    if (strategy->axes[axis] == factor &&
        roleOf(mesh->axes[axis]) != AxisRole::context)
      runs *= mesh->axes[axis].size;
  return runs;
}

double LocalWork::extentOf(int factor) const {
  return static_cast<double>(
             op.factors[static_cast<std::size_t>(factor)].size) /
         shardsOf(factor);
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
    double runs = runsOf(static_cast<int>(f));
    flops *= (1 + op.factors[f].skew * (1 - 1 / runs)) /
             shardsOf(static_cast<int>(f));
  }
  return flops;
}

double LocalWork::bytesOf(const Use &use) const {
  const Tensor &tensor = tensors[static_cast<std::size_t>(use.tensor)];
  double bytes = tensor.elementBytes;
  for (std::int64_t size : tensor.shape)
    bytes *= static_cast<double>(size);
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

} // namespace mtplan::planner
