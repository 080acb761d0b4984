//===- rank_executor.h - Executes one rank's part of a plan -----*- C++ -*-===//
//
// The constructor allocates memory and prepares all kernels. A step then queues
// the schedule, instruction by instruction in the plan's order, on the plan's
// streams. A backend without a queue runs each kernel when the kernel is
// called. The order of these calls satisfies all waits, because the plan lists
// every instruction after the instructions that it waits for. If the queue and
// the transport allow recording, one step after the first is recorded, and
// later steps replay the recording. Timed steps are neither recorded nor
// replayed.
//
// Devices with a transport of their own need not wait for the host: they decide
// whether to update, and compute the factor that clips and unscales the
// gradients. The host waits once per step, for the reports and the norm, and
// reaches the same decision. An update with host kernels follows the host's
// decision instead. Such an update cannot be recorded, because the host waits
// for each gradient.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_RANK_EXECUTOR_H
#define MTPLAN_RUNTIME_EXECUTOR_RANK_EXECUTOR_H

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/backend/kernel.h"
#include "runtime/backend/long_sum.h"
#include "runtime/communicator/communicator.h"
#include "runtime/executor/arena_memory.h"
#include "runtime/executor/rank_coordinates.h"
#include "runtime/executor/rank_programs.h"
#include "runtime/executor/tasks.h"

namespace mtplan::runtime {

/// Computes the initial values of a shard of one layer's parameter. Several
/// threads call the function concurrently.
using InitialValues =
    std::function<void(const Parameter &parameter, int copy,
                       const TensorView &piece, double *values)>;

class RankExecutor {
public:
  /// All ranks of the plan must call this together. All arguments must outlive
  /// the executor.
  /// \throws std::runtime_error if the backend or the world does not support
  /// the plan
  RankExecutor(const Plan &thePlan, World &theWorld, Backend &theBackend);
  ~RankExecutor();

  /// Sets parameters and master weights to their initial values.
  /// \param threads  number of threads that compute values, >= 1, including the
  /// caller's; the values do not depend on this number
  void initialise(const InitialValues &initial, int threads = 1);
  /// Runs a training step. All ranks must call this together.
  StepOutput step(const StepInput &input);
  /// Returns the reports, by label, of a forward pass without dropout.
  /// Parameters, optimizer state and collectives() do not change.
  std::map<std::string, double> evaluate(const StepInput &input);

  const RankCoordinates &place() const { return where; }
  const Stage &stage() const { return own; }
  /// Calls `see` with a tensor's contents at the last settle(), for layer
  /// `copy` and micro-batch 0. Any thread may call this.
  void read(const Tensor &tensor, int copy,
            const std::function<void(const std::byte *)> &see) const;
  /// Calls `fill` to change a tensor's contents. This function must not be
  /// called during a step.
  void modify(const Tensor &tensor, int copy,
              const std::function<void(std::byte *)> &fill);
  /// Waits until all queued work is complete. step() may return before its work
  /// is complete.
  void settle();
  /// Returns the number of collectives and messages in all steps so far.
  const std::map<CollectiveCount, std::int64_t> &collectives() const {
    return counted;
  }
  TimeSpent timeSpent() const;
  /// Returns the times of all instructions in the order of the stage's
  /// programs, followed by the time of the gradient norm.
  std::vector<InstructionTime> instructionTimes() const;
  /// Returns the flops of one step's kernels on this rank.
  double flops() const { return programs->flops(); }

private:
  /// Describes a part of a step that is queued identically in every step, so
  /// that the part can be recorded if the host only queues work.
  struct Part {
    int times = 0;
    bool mayBeRecorded = true; ///< false if the host does more than queue work
    /// Holds the collectives and messages of `recording`; may be null.
    std::unique_ptr<RecordedCalls> calls;
    /// Holds the recorded work. `recording` must be destroyed before `calls`.
    std::unique_ptr<Recording> recording;
    std::map<CollectiveCount, std::int64_t> counts; ///< calls per execution
  };

  void registerArenas();
  void prepareOwnKernels();
  World &carrier() { return carries ? *carries : world; }

  void queue(Part &part, const StepInput &input,
             const std::function<void()> &work);
  void runSchedule(const StepInput &input, bool reportsAlone);
  /// Stores the step's inputs for the work that is queued or replayed next.
  void feed(const StepInput &input, bool drops);
  /// Queues the start of a step: uploads the step's numbers and clears the
  /// reports.
  void beginStep();
  void sumSquares();
  void decideThere();
  void applyUpdate(const StepInput &input);
  double agree(StepOutput &output, const LongSum &norm, double scale);

  const Plan &plan;
  World &world;
  Backend &backend;
  RankCoordinates where;
  const Stage &own;
  ArenaMemory memory;
  /// Device kernels read the step's numbers in `numbers`. At the start of a
  /// step, stepNumbers is uploaded to `numbers`. If the update follows the
  /// host's decision, updateNumbers is uploaded to `numbers` before the update.
  /// Host kernels read updateNumbers directly.
  Allocation numbers, stepNumbers, updateNumbers;
  /// `squareSums` is the rank's sum of squared gradients (a LongSum), and
  /// `normOfOwn` is its host copy.
  Allocation squareSums, normOfOwn;
  Allocation allSquareSums; ///< one LongSum per rank
  Results results;
  std::unique_ptr<World> carries; ///< the device's transport; null: `world`
  /// Holds the communicator of each group of the plan; null if this rank is not
  /// in the group.
  std::vector<std::unique_ptr<Communicator>> groups;
  std::unique_ptr<Communicator> allRanks;
  /// Connects all ranks over `carries`; null if `carries` is null.
  std::unique_ptr<Communicator> allDeviceRanks;
  std::map<CollectiveCount, std::int64_t> counted;
  std::unique_ptr<RankPrograms> programs;
  std::unique_ptr<Kernel> clearSquares, squares;
  std::unique_ptr<Kernel> gradientFactor; ///< null: the host decides
  int sumsAreThere = 0; ///< event after the copies of the norm and the reports
  std::vector<std::string> reported; ///< labels of all stages' reports
  Part forward, update, evaluation;
  double secondsOfSteps = 0.0;
  double secondsOfNorm = 0.0;
  std::unique_ptr<StepTimes> stepTimes;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_RANK_EXECUTOR_H
