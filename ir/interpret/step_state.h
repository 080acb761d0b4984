//===- step_state.h - What outlives a micro-batch ---------------*- C++ -*-===//
//
// Parameters, accumulators and data: the structure operators, executed.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_INTERPRET_STEP_STATE_H
#define MTPLAN_IR_INTERPRET_STEP_STATE_H

#include "ir/interpret/interpret.h"
#include "ir/interpret/mesh_view.h"

namespace mtplan::ir {

class StepState {
public:
  /// Without `distributed`, layouts are ignored: all is whole.
  StepState(const RunOptions &runOptions, const MeshView &meshView,
            bool isDistributed)
      : options(runOptions), mesh(meshView), distributed(isDistributed) {}

  /// Finds the input that says how many tokens have a target.
  mlir::LogicalResult prepare(mlir::ModuleOp module);

  mlir::FailureOr<RankValues> readParameter(ParameterOp op, std::int64_t copy);
  mlir::FailureOr<RankValues> readInput(InputOp op, std::int64_t microBatch);
  mlir::LogicalResult accumulate(AccumulateOp op, std::int64_t copy,
                                 const RankValues &term);
  mlir::FailureOr<RankValues> readAccumulated(AccumulatedOp op,
                                              std::int64_t copy);
  mlir::LogicalResult update(AdamwOp op, std::int64_t copy,
                             const RankValues &gradient);
  /// The piece that each rank owns of an optimizer's state, updated; the
  /// parameter itself waits for `store`.
  mlir::FailureOr<RankValues> updateOwned(AdamwOp op, std::int64_t copy,
                                          const RankValues &gradient);
  mlir::LogicalResult store(StoreOp op, std::int64_t copy,
                            const RankValues &value);
  void report(ResultOp op, std::int64_t copy, const RankValues &value);

  /// The copies for which something was accumulated under `label`.
  std::vector<std::int64_t> accumulatedCopies(llvm::StringRef label) const;

  /// Whether a perturbation found its parameter.
  bool wasPerturbed() const { return perturbed; }
  /// Moves what was computed into `result`. `updated`: an mtp.update ran.
  void handOver(RunResult &result, bool updated);

private:
  mlir::FailureOr<LayoutAttr> layoutOf(mlir::Operation *op, LayoutAttr layout,
                                       std::size_t tensorRank) const;
  HostTensor initialPiece(const TensorKey &key,
                          llvm::ArrayRef<std::int64_t> shape, LayoutAttr layout,
                          std::int64_t rank);
  mlir::FailureOr<DistributedTensor *> parameterOf(mlir::Operation *op,
                                                   const TensorKey &key);
  mlir::LogicalResult noteGradient(AdamwOp op, const TensorKey &key,
                                   LayoutAttr layout,
                                   const RankValues &gradient);
  double countTargets(InputOp targets) const;

  const RunOptions &options;
  const MeshView &mesh;
  const bool distributed;
  bool perturbed = false;
  double targetCount = 0.0; ///< 0: the module has no targets
  TensorTable parameters, accumulators, gradients, results;
  std::map<std::string, std::string, std::less<>> inits; ///< by label
};

/// `copy` for labels with a `*`, 0 for others.
TensorKey keyOf(llvm::StringRef label, std::int64_t copy);

} // namespace mtplan::ir

#endif // MTPLAN_IR_INTERPRET_STEP_STATE_H
