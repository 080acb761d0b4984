//===- tensor_view.h - A tensor on one rank, without its data ---*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_BACKEND_TENSOR_VIEW_H
#define MTPLAN_RUNTIME_BACKEND_TENSOR_VIEW_H

#include <cstdint>
#include <vector>

#include "runtime/plan/element_type.h"

namespace mtplan::runtime {

/// Describes the range of one dimension that a rank holds.
struct Span {
  std::int64_t offset = 0;
  std::int64_t global = 1; ///< extent before sharding
};

/// Describes a dense row-major tensor of one rank.
struct TensorView {
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape; ///< local sizes
  std::vector<Span> pieces;        ///< one per dimension; empty: not sharded

  std::int64_t elements() const {
    std::int64_t product = 1;
    for (std::int64_t size : shape)
      product *= size;
    return product;
  }
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_TENSOR_VIEW_H
