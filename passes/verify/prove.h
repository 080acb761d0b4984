//===- prove.h - A plan computes what the model computes --------*- C++ -*-===//
//
// One proof for one plan: the planned module is shrunk, partitioned, split over
// the stages it is placed on, and run on all ranks of its mesh in double
// precision, each stage on its own; the model it was made of, shrunk alike,
// runs on one rank; loss, every gradient and every updated parameter must agree
// on every rank that holds them, and the collectives and messages executed must
// be those that the plan's changes of layout and of stage call for, each as
// often.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_VERIFY_PROVE_H
#define MTPLAN_PASSES_VERIFY_PROVE_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/interpret/interpret.h"
#include "ir/mtp.h"
#include "planner/simulate/schedule.h"

namespace mtplan::passes {

struct ProofOptions {
  std::uint64_t seed = 1;
  int microBatches = 2;
  double tolerance = 1e-10; ///< relative to the largest element of a tensor
  /// In which order stages work; none: one micro-batch after the other. It has
  /// to have an order for that many stages, chunks and micro-batches.
  std::optional<planner::ScheduleKind> schedule = {};
  ir::CollectiveHook afterCollective = {}; ///< of the partitioned run
};

struct Proof {
  bool holds = false;
  double worstError = 0.0; ///< relative; infinite if something is not finite
  std::string worst;       ///< which tensor, on which rank
  int tensors = 0;         ///< compared, ranks counted apart
  int ranks = 0;
  std::vector<std::string> failures; ///< empty if it holds
};

/// Proves that `planned`, a module after applyPlan, computes what `model` does,
/// the differentiated module it was made of, for as many samples. Neither is
/// changed.
Proof prove(mlir::ModuleOp model, mlir::ModuleOp planned,
            const ProofOptions &options = {});

/// The two programs a proof compares, for tests that break one of them.
struct ProofPair {
  mlir::OwningOpRef<mlir::ModuleOp> logical, partitioned;
  /// What `partitioned` was made of: what it ought to send.
  mlir::OwningOpRef<mlir::ModuleOp> planned;
};
/// Empty, with diagnostics, if a pass or a gate fails.
std::optional<ProofPair> buildProofPair(mlir::ModuleOp model,
                                        mlir::ModuleOp planned);
Proof compare(ProofPair &pair, const ProofOptions &options = {});

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_VERIFY_PROVE_H
