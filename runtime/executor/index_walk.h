//===- index_walk.h - Iterates over a shard of a tensor ---------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_INDEX_WALK_H
#define MTPLAN_RUNTIME_EXECUTOR_INDEX_WALK_H

#include "runtime/backend/kernel.h"

namespace mtplan::runtime {

/// Calls visit(local, global) for every element of the shard, in row-major
/// order, with its index in the shard and in the global tensor.
template <typename Visit>
void forEachElement(const TensorView &view, Visit visit) {
  const std::size_t rank = view.shape.size();
  std::vector<std::int64_t> index(rank, 0);
  const std::int64_t elements = view.elements();
  for (std::int64_t i = 0; i < elements; ++i) {
    std::int64_t global = 0;
    for (std::size_t d = 0; d < rank; ++d)
      global =
          global * view.pieces[d].global + view.pieces[d].offset + index[d];
    visit(i, global);
    for (std::size_t d = rank; d-- > 0;) {
      if (++index[d] < view.shape[d])
        break;
      index[d] = 0;
    }
  }
}

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_INDEX_WALK_H
