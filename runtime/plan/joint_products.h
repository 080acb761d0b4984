//===- joint_products.h - Products that may be one --------------*- C++ -*-===//
//
// The products of attention that make queries, keys and values of the same
// activations, and those that make the gradients of their weights, are too
// small each to fill a device. Where they lie evenly apart in memory a library
// has them as one product of several matrices.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_PLAN_JOINT_PRODUCTS_H
#define MTPLAN_RUNTIME_PLAN_JOINT_PRODUCTS_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// Einsums of one kind on one stream, of which nothing but where their tensors
/// lie differs: one operand is the same, the others and all results lie evenly
/// apart, in every run of the program alike. All may run when the earliest
/// does.
struct JointProducts {
  int program = 0; ///< of Stage::programs
  /// Of the program, in the order in which they lie; at least two.
  std::vector<std::size_t> instructions;
  /// Bytes to the next one's. What only a kernel that follows at once takes up
  /// has 0: it is not written.
  std::vector<std::int64_t> inputs, outputs;

  std::size_t earliest() const;
};

/// Of programs that go forward or backward, in the order of the plan; no
/// instruction is in two.
/// \param stage  that checkPlan finds nothing wrong with
std::vector<JointProducts> jointProducts(const Stage &stage);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_JOINT_PRODUCTS_H
