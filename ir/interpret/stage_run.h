//===- stage_run.h - One stage's ranks, in lock step ------------*- C++ -*-===//
//
// Interprets the program of one stage on all ranks of the stage: first the
// tasks, then the update. Each task is a forward or backward run through one
// chunk of the model for one micro-batch. run() returns when the stage is done
// or has to wait for another stage, and the next call resumes the stage.
// Without a pipeline, one stage has the whole model.
//
// Messages of one phase from one stage to another are received in the order in
// which they are sent, and sending never blocks. The stages of a group perform
// their all-reduces in the same order.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_INTERPRET_STAGE_RUN_H
#define MTPLAN_IR_INTERPRET_STAGE_RUN_H

#include <deque>
#include <map>
#include <tuple>
#include <vector>

#include "llvm/ADT/DenseMap.h"

#include "ir/interpret/interpret.h"
#include "ir/interpret/placement.h"
#include "ir/interpret/step_state.h"

namespace mtplan::ir {

struct Message {
  SendOp op;
  std::int64_t microBatch = 0;
  RankValues values; ///< one per rank of the sender's stage
};

/// Describes one all-reduce over a group of stages, with the values contributed
/// so far.
struct GroupSum {
  AllReduceOp first; ///< operator of the first stage that contributed
  std::map<std::int64_t, RankValues> passed;
};

class StageMessages {
public:
  explicit StageMessages(std::int64_t stageCount) : stages(stageCount) {}

  void send(Phase phase, std::int64_t from, Message message);
  /// Removes and returns the oldest message of `phase` from the sender of `op`
  /// to stage `to`, or nothing if there is none. Fails, with a diagnostic, if
  /// the message has another label or micro-batch than `op` expects.
  mlir::FailureOr<std::optional<Message>>
  receive(Phase phase, ReceiveOp op, std::int64_t to, std::int64_t microBatch);

  std::vector<std::int64_t> groupOf(AllReduceOp op) const;
  /// Contributes a value to the next all-reduce of the group. If the stage has
  /// already contributed and waits, a further call contributes nothing. Returns
  /// the sum once all stages of the group have contributed. Fails, with a
  /// diagnostic, if stages disagree on which all-reduce is next.
  mlir::FailureOr<std::optional<std::vector<HostTensor>>>
  contribute(AllReduceOp op, std::int64_t stage, const RankValues &value);
  /// Returns the stages that have not yet contributed to the all-reduce `op`
  /// for which `stage` waits.
  std::vector<std::int64_t> missingAt(AllReduceOp op, std::int64_t stage) const;

  /// Fails, with a diagnostic, if a message was sent but not received.
  mlir::LogicalResult expectEmpty() const;

private:
  using Channel = std::tuple<Phase, std::int64_t, std::int64_t>;
  using Group = std::vector<std::int64_t>;

  std::int64_t stages;
  std::map<Channel, std::deque<Message>> channels;
  std::map<Group, std::vector<GroupSum>> sums;
  /// Counts the all-reduces of a group that a stage has finished.
  std::map<std::pair<Group, std::int64_t>, std::size_t> finished;
};

struct SharedRun {
  const RunOptions &options;
  MeshView mesh; ///< ranks of one stage
  bool partitioned = false;
  bool differentiated = false;
  std::int64_t stages = 1;
  StageMessages messages;
  std::map<CollectiveKey, std::int64_t> collectives = {};
};

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
  mlir::Operation *waitingAt() const { return waiting; }
  std::string waitText() const;

  StepState state;

private:
  using Frame = llvm::DenseMap<mlir::Value, RankValues>;
  struct Visit {
    SegmentOp segment;
    std::int64_t copy = 0;
  };
  using FrameKey = std::pair<std::int64_t, const Visit *>;

  // Tasks and the update run one operator at a time. While the stage waits,
  // `op` does not advance.
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

  mlir::LogicalResult execute(mlir::Operation *ran, Frame &frame);
  mlir::LogicalResult send(SendOp ran, const RankValues &value);
  mlir::LogicalResult receive(ReceiveOp ran, Frame &frame);
  mlir::LogicalResult sumOverStages(AllReduceOp ran, Frame &frame);
  mlir::FailureOr<RankValues> executeCollective(mlir::Operation *ran,
                                                const RankValues &input);
  mlir::LogicalResult executeKernel(mlir::Operation *ran, Frame &frame);
  mlir::FailureOr<const Placement *> placementOf(mlir::Operation *ran);
  /// Sets `result` to `value` in `frame`. Fails if the shape of `value` differs
  /// from that of `result`.
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

  // `task` is the index of the current task in program.tasks, and `visit` is
  // the index of the task's current layer in visits(). In backward, `visit`
  // counts from the end.
  std::size_t task = 0, visit = 0;
  /// Points to the next operator. The pointer is null before the first operator
  /// of a layer, and when the stage is done.
  mlir::Operation *op = nullptr;
  mlir::Operation *waiting = nullptr;
  runtime::Moment moment;
  Phase phase = Phase::forward;
  std::vector<RankValues> carried;
  std::map<FrameKey, Frame> frames; ///< forward values that backward reads

  // `common` and `byCopy` hold the values of the update. A value whose label
  // has no `*` is in `common`, so that all layers may read it. All other values
  // are in `byCopy`, by layer.
  Frame common;
  std::map<std::int64_t, Frame> byCopy;
  /// Lists the layers for which `op` of the update has yet to run.
  std::optional<std::vector<std::int64_t>> copies;
};

} // namespace mtplan::ir

#endif // MTPLAN_IR_INTERPRET_STAGE_RUN_H
