//===- step_state.h - What outlives a micro-batch ---------------*- C++ -*-===//
//
// The state behind the structure operators: parameters, accumulators and data.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_INTERPRET_STEP_STATE_H
#define MTPLAN_IR_INTERPRET_STEP_STATE_H

#include "ir/interpret/interpret.h"

namespace mtplan::ir {

class StepState {
public:
  /// Ignores layouts unless `distributed`, so that no tensor is split.
  StepState(const RunOptions &runOptions, const MeshView &meshView,
            bool isDistributed)
      : options(runOptions), mesh(meshView), distributed(isDistributed) {}

  /// Finds the input whose targets the count follows from.
  mlir::LogicalResult prepare(mlir::ModuleOp module);

  mlir::FailureOr<RankValues> readParameter(ParameterOp op, std::int64_t copy);
  mlir::FailureOr<RankValues> readInput(InputOp op, std::int64_t microBatch);
  mlir::LogicalResult accumulate(AccumulateOp op, std::int64_t copy,
                                 const RankValues &term);
  mlir::FailureOr<RankValues> readAccumulated(AccumulatedOp op,
                                              std::int64_t copy);
  mlir::LogicalResult update(AdamwOp op, std::int64_t copy,
                             const RankValues &gradient);
  /// Returns the updated piece that each rank owns of an optimizer's state. The
  /// parameter itself changes with `store`.
  mlir::FailureOr<RankValues> updateOwned(AdamwOp op, std::int64_t copy,
                                          const RankValues &gradient);
  mlir::LogicalResult store(StoreOp op, std::int64_t copy,
                            const RankValues &value);
  void report(ResultOp op, std::int64_t copy, const RankValues &value);

  /// Returns the copies for which a value was accumulated under `label`.
  std::vector<std::int64_t> accumulatedCopies(llvm::StringRef label) const;

  /// Returns whether a perturbation found its parameter.
  bool wasPerturbed() const { return perturbed; }
  /// Moves the results of the run into `result`. `updated` tells whether an
  /// mtp.update ran.
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

} // namespace mtplan::ir

#endif // MTPLAN_IR_INTERPRET_STEP_STATE_H
