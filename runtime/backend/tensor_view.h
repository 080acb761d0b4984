//===- tensor_view.h - What a rank has of a tensor --------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_BACKEND_TENSOR_VIEW_H
#define MTPLAN_RUNTIME_BACKEND_TENSOR_VIEW_H

#include <cstdint>
#include <vector>

#include "runtime/plan/element_type.h"

namespace mtplan::runtime {

/// Which piece of a dimension a rank has.
struct Span {
  std::int64_t offset = 0;
  std::int64_t global = 1; ///< extent of the whole
};

/// A dense row-major tensor of one rank, without its data.
struct TensorView {
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape; ///< local
  std::vector<Span> pieces;        ///< by dimension; empty: whole

  std::int64_t elements() const {
    std::int64_t product = 1;
    for (std::int64_t size : shape)
      product *= size;
    return product;
  }
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_TENSOR_VIEW_H
