//===- step_state.h - Parameters, sums and data of a step -------*- C++ -*-===//
//
// Holds the state that structure operators, such as mtp.parameter,
// mtp.accumulate and mtp.input, read and write.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_INTERPRET_STEP_STATE_H
#define MTPLAN_IR_INTERPRET_STEP_STATE_H

#include "ir/interpret/interpret.h"

namespace mtplan::ir {

class StepState {
public:
  /// If `isDistributed` is false, the state ignores layouts and shards nothing.
  StepState(const RunOptions &runOptions, const MeshView &meshView,
            bool isDistributed)
      : options(runOptions), mesh(meshView), distributed(isDistributed) {}

  /// Counts the target tokens of the step for the input "count".
  mlir::LogicalResult prepare(mlir::ModuleOp module);

  mlir::FailureOr<RankValues> readParameter(ParameterOp op, std::int64_t copy);
  mlir::FailureOr<RankValues> readInput(InputOp op, std::int64_t microBatch);
  mlir::LogicalResult accumulate(AccumulateOp op, std::int64_t copy,
                                 const RankValues &term);
  mlir::FailureOr<RankValues> readAccumulated(AccumulatedOp op,
                                              std::int64_t copy);
  mlir::LogicalResult update(AdamwOp op, std::int64_t copy,
                             const RankValues &gradient);
  /// Updates and returns the shard of the master weights that each rank owns
  /// (ZeRO). The parameter itself changes in store().
  mlir::FailureOr<RankValues> updateOwned(AdamwOp op, std::int64_t copy,
                                          const RankValues &gradient);
  mlir::LogicalResult store(StoreOp op, std::int64_t copy,
                            const RankValues &value);
  void report(ResultOp op, std::int64_t copy, const RankValues &value);

  std::vector<std::int64_t> accumulatedCopies(llvm::StringRef label) const;

  bool wasPerturbed() const { return perturbed; }
  /// \param updated  whether the module has an mtp.update
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
  double targetCount = 0.0; ///< 0 if the module has no targets
  TensorTable parameters, accumulators, gradients, results;
  /// Maps labels to the initialisation of parameters (ParameterOp::getInit).
  std::map<std::string, std::string, std::less<>> inits;
};

} // namespace mtplan::ir

#endif // MTPLAN_IR_INTERPRET_STEP_STATE_H
