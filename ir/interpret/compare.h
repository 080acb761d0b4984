//===- compare.h - Do two runs agree? ---------------------------*- C++ -*-===//

#ifndef MTPLAN_IR_INTERPRET_COMPARE_H
#define MTPLAN_IR_INTERPRET_COMPARE_H

#include <string>

#include "ir/interpret/interpret.h"

namespace mtplan::ir {

/// The largest disagreement found, and where.
struct Comparison {
  /// Relative; infinite for NaN, wrong shapes and missing tensors.
  double worst = 0.0;
  std::string kind;      ///< "gradient", "parameter" or "result"
  std::string name;      ///< label with the copy's number, see TensorKey::name
  std::int64_t rank = 0; ///< rank of the partitioned run
  std::int64_t tensors = 0; ///< how many were compared
};

/// Compares every result, gradient and updated parameter. The piece of each
/// rank is compared with the slice of the logical tensor that its layout names,
/// so that replicas and copies on other stages are checked too. Partial pieces
/// are reduced first.
///
/// The error of a tensor is max |piece - slice| / max(max |logical|, bound),
/// where the bound is 1e-5 of the largest element of all logical tensors of
/// that kind. The bound is needed for gradients that are rounding error, such
/// as that of the bias of all keys, which softmax cancels. The noise is 1e-16
/// of the numbers that cancel, and up to 2e-10 of a bound of 1e-6.
Comparison compareRuns(const RunResult &logical, const RunResult &partitioned);

} // namespace mtplan::ir

#endif // MTPLAN_IR_INTERPRET_COMPARE_H
