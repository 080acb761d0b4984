//===- prove.h - Verifies a plan by execution -------------------*- C++ -*-===//
//
// The planned module is shrunk, partitioned, split over its pipeline stages and
// interpreted on all ranks of its mesh in double precision. The model, shrunk
// in the same way, runs on one rank. On every rank that holds the loss, a
// gradient or an updated parameter, the value must agree with that of the
// model. The executed collectives and messages must be those that the reshards
// and the stages of the plan require, in kind and number.
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
  /// Selects the pipeline schedule. Without a schedule, each micro-batch runs
  /// after the previous micro-batch. The schedule must support the number of
  /// stages, chunks and micro-batches.
  std::optional<planner::ScheduleKind> schedule = {};
  ir::CollectiveHook afterCollective = {}; ///< called in the partitioned run
};

struct Proof {
  bool holds = false;
  double worstError = 0.0; ///< relative; infinite if a run fails or for NaN
  std::string worst;       ///< tensor and rank of the largest error
  int tensors = 0;         ///< number of tensors compared
  int ranks = 0;
  std::vector<std::string> failures; ///< empty if `holds`
};

/// Checks that `planned`, a module after applyPlan(), computes the same results
/// as `model`, the differentiated module before planning. Both modules must
/// have the same number of samples. Neither is modified.
Proof prove(mlir::ModuleOp model, mlir::ModuleOp planned,
            const ProofOptions &options = {});

/// Holds the two programs that a proof compares. Tests can inject a fault into
/// one of the programs.
struct ProofPair {
  mlir::OwningOpRef<mlir::ModuleOp> logical, partitioned;
  /// Holds the module before partitioning, which determines the collectives and
  /// messages that `partitioned` must execute.
  mlir::OwningOpRef<mlir::ModuleOp> planned;
};
/// Returns both programs, or nothing, with diagnostics, if a pass fails.
std::optional<ProofPair> buildProofPair(mlir::ModuleOp model,
                                        mlir::ModuleOp planned);
Proof compare(ProofPair &pair, const ProofOptions &options = {});

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_VERIFY_PROVE_H
