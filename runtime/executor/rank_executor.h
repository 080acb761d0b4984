//===- rank_executor.h - One rank runs its part of a plan -------*- C++ -*-===//
//
// Everything is looked up, prepared and allocated when the executor is made; a
// step then queues the schedule, instruction by instruction, in the order of
// the plan, on its streams. Where kernels run when they are called, that order
// is one of those which streams and waits allow. Where a queue records, the
// second step is recorded and later ones are replayed. Devices decide by
// themselves whether and how a step updates, and go on; the host waits once a
// step, for the reports and the norm, and decides the same. An update that the
// host has a part in follows the host's decision and is queued anew every time:
// the host waits for each thing that it works on.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_RANK_EXECUTOR_H
#define MTPLAN_RUNTIME_EXECUTOR_RANK_EXECUTOR_H

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/backend/kernel.h"
#include "runtime/backend/long_sum.h"
#include "runtime/communicator/communicator.h"
#include "runtime/executor/arena_memory.h"
#include "runtime/executor/rank_place.h"
#include "runtime/executor/results.h"
#include "runtime/executor/step_data.h"
#include "runtime/executor/step_times.h"
#include "runtime/executor/stream_order.h"
#include "runtime/plan/joint_collectives.h"
#include "runtime/plan/joint_products.h"
#include "runtime/plan/joint_updates.h"
#include "runtime/training/update_rule.h"

namespace mtplan::runtime {

struct TaskRun;

/// Fills a piece of a copy of a parameter before training. Called by several
/// threads at a time.
using InitialValues =
    std::function<void(const Parameter &parameter, int copy,
                       const TensorView &piece, double *values)>;

/// What an instruction of the rank's stage took in all steps so far that were
/// timed.
struct InstructionTime {
  /// Null: the norm of gradients, of this rank's and, where devices decide, of
  /// all; no program has it.
  const Instruction *instruction = nullptr;
  double seconds = 0.0;
};

/// What every rank knows of a step before it runs.
struct StepInput {
  StepData *data = nullptr;
  std::uint64_t seed = 1;
  std::int64_t step = 1; ///< from 1
  UpdateNumbers update;  ///< gradientFactor: unread where there is a rule
  /// Of the loss, and so of all gradients; reports are without it.
  double lossScale = 1.0;
  /// Whether the streams of a device take turns, so that the time of each
  /// instruction is its own: nothing overlaps, and nothing is recorded or
  /// replayed. Where kernels run when they are called all steps are timed.
  bool isTimed = false;
  /// Where to note when each instruction ran, of a timed step; null: nowhere.
  std::vector<InstructionRun> *trace = nullptr;
  /// Clip, loss scale, and what is done about a norm that is not finite: alike
  /// on all ranks. Null: every step updates.
  UpdateRule *rule = nullptr;
  /// Called before the update: up to then parameters and moments are as the
  /// step before left them. Null: nothing.
  std::function<void()> beforeUpdate;
};

/// What every rank knows after it.
struct StepOutput {
  std::map<std::string, double> reports; ///< of all stages; copies added up
  double gradientNorm = 0.0;             ///< of all parameters, before the clip
  bool skipped = false;                  ///< nothing was updated
};

/// How often each collective ran, by phase of the program it stands in
/// ("forward", "backward", "update", as is what is overlapped), kind and group.
struct CollectiveCount {
  std::string phase, kind, group;
  bool operator==(const CollectiveCount &) const = default;
  bool operator<(const CollectiveCount &other) const {
    return std::tie(phase, kind, group) <
           std::tie(other.phase, other.kind, other.group);
  }
};

/// Seconds of all steps so far that were timed. Of `steps` what hosts say to
/// each other of their norms, and what is between instructions, are in nothing
/// else.
struct TimeSpent {
  double kernels = 0.0, collectives = 0.0, transfers = 0.0, data = 0.0,
         steps = 0.0;
};

class RankExecutor {
public:
  /// All must outlive the executor; every rank of the plan makes one at the
  /// same time. Throws std::runtime_error for what the backend or the world
  /// cannot do.
  RankExecutor(const Plan &thePlan, World &theWorld, Backend &theBackend);
  ~RankExecutor();

  /// \param threads  that draw, with the caller's, >= 1; no bit depends on it
  void initialise(const InitialValues &initial, int threads = 1);
  StepOutput step(const StepInput &input);
  /// The reports of a step that only goes forward. Nothing is dropped, and
  /// nothing that training keeps from step to step is changed or counted.
  std::map<std::string, double> evaluate(const StepInput &input);

  const RankPlace &place() const { return where; }
  const Stage &stage() const { return own; }
  /// The tensor of a copy and of micro-batch 0, as it was at the last settle().
  /// From any thread.
  void look(const Tensor &tensor, int copy,
            const std::function<void(const std::byte *)> &see) const;
  /// Has a tensor changed, or a part of it. Not while a step is under way.
  void change(const Tensor &tensor, int copy,
              const std::function<void(std::byte *)> &fill);
  /// Waits until all that was queued has happened. A step may return earlier.
  void settle();
  const std::map<CollectiveCount, std::int64_t> &collectives() const {
    return counted;
  }
  TimeSpent timeSpent() const;
  /// In the order of the stage's programs; then the norm of gradients.
  std::vector<InstructionTime> instructionTimes() const;
  /// Of the kernels of one step of this rank.
  double flops() const;

  class Task;

private:
  /// Part of a step that is queued alike every time.
  struct Part {
    int times = 0;
    bool mayBeRecorded = true; ///< the host does nothing in it but queue
    std::unique_ptr<RecordedCalls> calls; ///< null: none to repeat
    /// What the calls are in, and gone before their marks are.
    std::unique_ptr<Recording> recording;
    std::map<CollectiveCount, std::int64_t> counts; ///< of one time
  };

  std::unique_ptr<Task> prepare(const Instruction &instruction,
                                const std::string &phase);
  KernelSpec specOf(const Instruction &instruction) const;
  void registerArenas();
  void prepareOwnKernels();
  /// Kernels of the update that are one to the backend.
  void joinUpdates();
  void join(const JointUpdates &joint);
  /// Products that are one to the backend.
  void joinProducts();
  void join(const JointProducts &joint);
  /// Collectives that are one to their group.
  void joinCollectives();
  void join(const JointCollectives &joint);
  void findReporting();
  World &carrier() { return carries ? *carries : world; }

  void queue(Part &part, const StepInput &input,
             const std::function<void()> &work);
  /// \param wanted  instructions; null: all
  void run(const ScheduleEntry &entry, const StepInput &input,
           const std::vector<bool> *wanted);
  void runSchedule(const StepInput &input, bool reportsAlone);
  void runTimed(Task &task, const TaskRun &run, InstructionRun what);
  /// Takes what the step is given, for what is queued or replayed next.
  void feed(const StepInput &input, bool drops);
  /// Queued first: the step's numbers; nothing is reported yet.
  void beginStep();
  void sumSquares();
  void decideThere();
  void applyUpdate(const StepInput &input);
  double agree(StepOutput &output, const LongSum &norm, double scale);

  const Plan &plan;
  World &world;
  Backend &backend;
  RankPlace where;
  const Stage &own;
  ArenaMemory memory;
  /// What kernels read, and what it is copied from before the step and before
  /// its update, of which the host's kernels read the last itself.
  Allocation numbers, stepNumbers, updateNumbers;
  Allocation squareSums, normOfOwn; ///< a LongSum each, the second the host's
  Allocation allSquareSums;         ///< of all ranks
  Results results;
  std::unique_ptr<World> carries;                    ///< null: `world` does
  std::vector<std::unique_ptr<Communicator>> groups; ///< null: not in it
  std::unique_ptr<Communicator> everyone;
  std::unique_ptr<Communicator> everyoneThere; ///< on devices; null: none
  std::vector<std::vector<std::unique_ptr<Task>>> programs;
  std::vector<StreamOrder> orders; ///< by program
  /// By program: what an evaluation runs of it.
  std::vector<std::vector<bool>> reporting;
  std::unique_ptr<Kernel> clearSquares, squares;
  std::unique_ptr<Kernel> gradientFactor; ///< null: no device decides
  int sumsAreThere = 0;                   ///< an event
  std::vector<std::string> reported;      ///< by any stage
  std::map<CollectiveCount, std::int64_t> counted;
  Part forward, update, evaluation;
  double secondsOfSteps = 0.0;
  double secondsOfNorm = 0.0;
  std::unique_ptr<StepTimes> stepTimes;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_RANK_EXECUTOR_H
