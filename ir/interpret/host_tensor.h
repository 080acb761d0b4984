//===- host_tensor.h - A tensor of doubles in memory ------------*- C++ -*-===//
//
// The interpreter's only kind of value. Whatever element type the program
// gives a tensor, here it is a double: rounding is not what is being proved.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_INTERPRET_HOST_TENSOR_H
#define MTPLAN_IR_INTERPRET_HOST_TENSOR_H

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace mtplan::ir {

/// Row-major; a tensor without dimensions has one element.
struct HostTensor {
  std::vector<std::int64_t> shape;
  std::vector<double> data;

  HostTensor() = default;
  /// Filled with zeros.
  explicit HostTensor(std::vector<std::int64_t> dims)
      : shape(std::move(dims)), data(countOf(shape), 0.0) {}

  static std::size_t countOf(const std::vector<std::int64_t> &dims) {
    std::size_t count = 1;
    for (std::int64_t dim : dims)
      count *= static_cast<std::size_t>(dim);
    return count;
  }
};

/// One value of an SPMD program: what each rank holds of it. Values never
/// change once made, so that handing one on costs nothing.
using RankValues = std::shared_ptr<const std::vector<HostTensor>>;

/// Calls `visit(linear, index)` for every element of a tensor of `shape`, in
/// row-major order.
template <typename Visit>
void forEachIndex(const std::vector<std::int64_t> &shape, Visit &&visit) {
  std::vector<std::int64_t> index(shape.size(), 0);
  const std::size_t count = HostTensor::countOf(shape);
  for (std::size_t linear = 0; linear < count; ++linear) {
    visit(linear, index);
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d])
        break;
      index[d] = 0;
    }
  }
}

} // namespace mtplan::ir

#endif // MTPLAN_IR_INTERPRET_HOST_TENSOR_H
