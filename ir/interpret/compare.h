//===- compare.h - Do two runs agree? ---------------------------*- C++ -*-===//

#ifndef MTPLAN_IR_INTERPRET_COMPARE_H
#define MTPLAN_IR_INTERPRET_COMPARE_H

#include <string>

#include "ir/interpret/interpret.h"

namespace mtplan::ir {

/// The largest disagreement found, and where.
struct Comparison {
  double worst = 0.0;    ///< relative; infinite for NaN, wrong shapes, absence
  std::string kind;      ///< "gradient", "parameter" or "result"
  std::string name;      ///< label with the copy's number, see TensorKey::name
  std::int64_t rank = 0; ///< of the partitioned run
  std::int64_t tensors = 0; ///< how many were compared
};

/// Compares every result, gradient and updated parameter: the piece of every
/// rank that has one with the slice of the logical tensor that its layout says,
/// so that replicas, and copies of other stages, are checked as well. Pieces
/// that are partial are reduced first.
///
/// The error of a tensor is max |piece - slice| / max(max |logical|, floor),
/// the floor being 1e-5 of the largest element of all logical tensors of that
/// kind. Without it a gradient that is zero but for rounding (the bias of the
/// keys: softmax does not see it) would compare noise with noise, which is
/// 1e-16 of what cancels and up to 2e-10 of a floor of 1e-6.
Comparison compareRuns(const RunResult &logical, const RunResult &partitioned);

} // namespace mtplan::ir

#endif // MTPLAN_IR_INTERPRET_COMPARE_H
