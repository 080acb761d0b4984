//===- host_tensor.h - A tensor of doubles in memory ------------*- C++ -*-===//
//
// The interpreter has one kind of value. A tensor is of doubles whatever its
// type in the program, because rounding is not what the interpreter proves.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_INTERPRET_HOST_TENSOR_H
#define MTPLAN_IR_INTERPRET_HOST_TENSOR_H

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/reference/pieces.h"

namespace mtplan::ir {

/// The elements are in row-major order. A scalar has one.
struct HostTensor {
  std::vector<std::int64_t> shape;
  std::vector<double> data;

  HostTensor() = default;
  /// Makes a tensor of zeros.
  explicit HostTensor(std::vector<std::int64_t> dims)
      : shape(std::move(dims)), data(countOf(shape), 0.0) {}

  static std::size_t countOf(const std::vector<std::int64_t> &dims) {
    std::size_t count = 1;
    for (std::int64_t dim : dims)
      count *= static_cast<std::size_t>(dim);
    return count;
  }
};

/// The pieces that all ranks hold of one value of an SPMD program. Values never
/// change, so that passing one on costs nothing.
using RankValues = std::shared_ptr<const std::vector<HostTensor>>;

using runtime::reference::forEachIndex;

} // namespace mtplan::ir

#endif // MTPLAN_IR_INTERPRET_HOST_TENSOR_H
