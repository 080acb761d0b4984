//===- stage_run.h - One stage's ranks, in lock step ------------*- C++ -*-===//
//
// Interprets the ranks of one stage: its tasks, each a forward or backward run
// through one chunk of the model for one micro-batch, and then the update. The
// run returns when it has to wait for another stage, and the next call of run()
// resumes it. Without a pipeline, one stage has the whole model.
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

/// The state that all stages of a run share.
struct SharedRun {
  const RunOptions &options;
  MeshView mesh; ///< ranks of one stage
  bool partitioned = false;
  bool differentiated = false;
  std::int64_t stages = 1;
  Mail mail;
  std::map<CollectiveKey, std::int64_t> collectives = {};
};

/// The segments, update and tasks of one stage.
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
  /// Runs until the stage is done or has to wait. Returns whether anything ran.
  mlir::FailureOr<bool> run();
  bool isDone() const { return task == program.tasks.size() && !op; }
  /// After run(), the operator that waits or null, and the reason as text.
  mlir::Operation *waitingAt() const { return waiting; }
  std::string waitText() const;

  StepState state;

private:
  using Frame = llvm::DenseMap<mlir::Value, RankValues>;
  /// One of the repeated layers of a segment.
  struct Visit {
    SegmentOp segment;
    std::int64_t copy = 0;
  };
  /// A micro-batch and a layer.
  using FrameKey = std::pair<std::int64_t, const Visit *>;

  // Tasks and the update run one operator at a time. `op` does not advance
  // while it waits.
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

  // These methods execute one operator on all ranks of the stage.
  mlir::LogicalResult execute(mlir::Operation *ran, Frame &frame);
  mlir::LogicalResult send(SendOp ran, const RankValues &value);
  mlir::LogicalResult receive(ReceiveOp ran, Frame &frame);
  mlir::LogicalResult sumOverStages(AllReduceOp ran, Frame &frame);
  mlir::FailureOr<RankValues> executeCollective(mlir::Operation *ran,
                                                const RankValues &input);
  mlir::LogicalResult executeKernel(mlir::Operation *ran, Frame &frame);
  mlir::FailureOr<const Placement *> placementOf(mlir::Operation *ran);
  /// Sets `result` to `value` in `frame`. Fails if the shape of `value` is not
  /// the declared one.
  mlir::LogicalResult define(mlir::Value result,
                             const mlir::FailureOr<RankValues> &value,
                             Frame &frame);
  /// Counts a collective over `axis` and calls the hook, which may change
  /// `received`.
  RankValues seen(mlir::Operation *ran, llvm::StringRef axis,
                  const std::vector<HostTensor> &passed,
                  std::vector<HostTensor> received);

  SharedRun &shared;
  const std::int64_t stage;
  StageProgram program;
  std::map<std::int64_t, std::vector<Visit>> chunks;
  llvm::DenseMap<mlir::Operation *, Placement> placements;

  // Indices of the current task and of its current layer.
  std::size_t task = 0, visit = 0;
  /// Next operator, or null before the first operator of the current layer.
  mlir::Operation *op = nullptr;
  mlir::Operation *waiting = nullptr;
  runtime::Moment moment;
  Phase phase = Phase::forward;
  std::vector<RankValues> carried;
  std::map<FrameKey, Frame> frames; ///< forward values that backward reads

  // The values of the update: in `common` if the label has no `*`, so that all
  // layers may read the value, and otherwise by layer.
  Frame common;
  std::map<std::int64_t, Frame> byCopy;
  /// Layers for which `op` of the update has still to run.
  std::optional<std::vector<std::int64_t>> copies;
};

} // namespace mtplan::ir

#endif // MTPLAN_IR_INTERPRET_STAGE_RUN_H
