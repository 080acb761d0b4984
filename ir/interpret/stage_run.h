//===- stage_run.h - One stage's ranks, in lock step ------------*- C++ -*-===//
//
// The interpreter of what all ranks of one stage do: their tasks (forward or
// backward of one part of the model for one micro-batch) and then the update.
// It stops where it has to wait for another stage and goes on when asked again.
// Without a pipeline there is one stage, which has everything.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_INTERPRET_STAGE_RUN_H
#define MTPLAN_IR_INTERPRET_STAGE_RUN_H

#include "llvm/ADT/DenseMap.h"

#include "ir/interpret/interpret.h"
#include "ir/interpret/mail.h"
#include "ir/interpret/placement.h"
#include "ir/interpret/step_state.h"

namespace mtplan::ir {

/// What all stages of a run share.
struct SharedRun {
  const RunOptions &options;
  MeshView mesh; ///< of the ranks of one stage
  bool partitioned = false;
  bool differentiated = false;
  std::int64_t stages = 1;
  Mail mail;
  std::map<CollectiveKey, std::int64_t> collectives = {};
};

/// What one stage runs.
struct StageProgram {
  std::vector<SegmentOp> segments; ///< in chain order
  UpdateOp update;                 ///< may be null
  std::vector<StageTask> tasks;
};

class StageRun {
public:
  StageRun(SharedRun &sharedRun, std::int64_t stageNumber,
           StageProgram stageProgram);

  mlir::LogicalResult prepare(mlir::ModuleOp module) {
    return state.prepare(module);
  }
  /// Runs until all is done or it has to wait. True if it did anything.
  mlir::FailureOr<bool> run();
  bool isDone() const { return task == program.tasks.size() && !op; }
  /// The operator that waits, and for what, in words; after run().
  mlir::Operation *waitingAt() const { return waiting; }
  std::string waitText() const;

  StepState state;

private:
  using Frame = llvm::DenseMap<mlir::Value, RankValues>;
  /// One copy of a segment.
  struct Visit {
    SegmentOp segment;
    std::int64_t copy = 0;
  };
  using FrameKey = std::pair<std::int64_t, const Visit *>; ///< by micro-batch

  // Tasks and the update, stage_run.cpp. One operator at a time: `op` stays
  // where it is if it has to wait.
  std::vector<Visit> &visits() { return chunks[program.tasks[task].chunk]; }
  const Visit &current();
  mlir::LogicalResult enter();
  mlir::LogicalResult bind(mlir::Operation *owner, mlir::Block &block,
                           Frame &frame);
  mlir::LogicalResult advanceTask();
  void leave(YieldOp yield);
  void nextTask();
  void startUpdate();
  mlir::LogicalResult advanceUpdate();
  mlir::LogicalResult findCopies();
  mlir::LogicalResult executeInUpdate(std::int64_t copy);

  // One operator, stage_execute.cpp.
  mlir::LogicalResult execute(mlir::Operation *ran, Frame &frame);
  mlir::LogicalResult send(SendOp ran, const RankValues &value);
  mlir::LogicalResult receive(ReceiveOp ran, Frame &frame);
  mlir::LogicalResult sumOverStages(AllReduceOp ran, Frame &frame);
  mlir::FailureOr<RankValues> executeCollective(mlir::Operation *ran,
                                                const RankValues &input);
  mlir::LogicalResult executeKernel(mlir::Operation *ran, Frame &frame);
  mlir::FailureOr<const Placement *> placementOf(mlir::Operation *ran);
  /// Binds the only result, unless its shape is not the one declared.
  mlir::LogicalResult define(mlir::Value result,
                             const mlir::FailureOr<RankValues> &value,
                             Frame &frame);
  /// Of an operator over `axis`: counts it, and shows it to the hook.
  RankValues seen(mlir::Operation *ran, llvm::StringRef axis,
                  const std::vector<HostTensor> &passed,
                  std::vector<HostTensor> received);

  SharedRun &shared;
  const std::int64_t stage;
  StageProgram program;
  std::map<std::int64_t, std::vector<Visit>> chunks;
  llvm::DenseMap<mlir::Operation *, Placement> placements;

  // Where it is.
  std::size_t task = 0, visit = 0;
  mlir::Operation *op = nullptr; ///< next; null: before the block of `visit`
  mlir::Operation *waiting = nullptr;
  Moment moment;
  Phase phase = Phase::forward;
  std::vector<RankValues> carried;
  std::map<FrameKey, Frame> frames; ///< what backward reads of forward

  // Of the update: values of labels without a `*` belong to no copy and serve
  // all of them.
  Frame common;
  std::map<std::int64_t, Frame> byCopy;
  std::optional<std::vector<std::int64_t>> copies; ///< for which to run `op`
};

} // namespace mtplan::ir

#endif // MTPLAN_IR_INTERPRET_STAGE_RUN_H
