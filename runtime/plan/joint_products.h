//===- joint_products.h - Products that may be batched ----------*- C++ -*-===//
//
// The products of attention that compute queries, keys and values from one
// input, and those that compute the gradients of their weights, are too small
// to fill a device. If their operands lie at even distances in memory, a
// library runs them as one batched product.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_PLAN_JOINT_PRODUCTS_H
#define MTPLAN_RUNTIME_PLAN_JOINT_PRODUCTS_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// Einsums of one kind on one stream that differ only in the places of their
/// tensors: one operand is the same, and the others and all results lie at even
/// distances, equally in every run of the program. All may run when the
/// earliest does.
struct JointProducts {
  int program = 0; ///< of Stage::programs
  /// Indices in the program, in the order of memory; at least two.
  std::vector<std::size_t> instructions;
  /// Bytes to the next one's. A value that only a fused consumer reads has 0:
  /// it is not written.
  std::vector<std::int64_t> inputs, outputs;

  std::size_t earliest() const;
};

/// Returns batches of forward and backward programs, in the order of the plan;
/// no instruction is in two.
/// \param stage  has passed checkPlan
std::vector<JointProducts> jointProducts(const Stage &stage);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_JOINT_PRODUCTS_H
