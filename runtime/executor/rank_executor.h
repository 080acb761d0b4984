//===- rank_executor.h - Executes one rank's part of a plan -----*- C++ -*-===//
//
// Everything is looked up, prepared and allocated when the executor is made. A
// step then queues the schedule, instruction by instruction, in the order of
// the plan, on its streams. If kernels run when they are called, that order is
// one that streams and waits allow. If a queue can record, the second step is
// recorded and later ones are replayed. Devices decide by themselves whether
// and how a step updates, and continue; the host waits once per step, for the
// reports and the norm, and decides the same. An update with work for the host
// follows the host's decision and is queued anew every time, because the host
// waits for each gradient.
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
#include "runtime/executor/rank_place.h"
#include "runtime/executor/rank_programs.h"
#include "runtime/executor/results.h"

namespace mtplan::runtime {

/// Initialises a shard of one layer's parameter before training. Several
/// threads call it at a time.
using InitialValues =
    std::function<void(const Parameter &parameter, int copy,
                       const TensorView &piece, double *values)>;

class RankExecutor {
public:
  /// All arguments must outlive the executor, and every rank of the plan makes
  /// one at the same time. Throws std::runtime_error for what the backend or
  /// the world cannot do.
  RankExecutor(const Plan &thePlan, World &theWorld, Backend &theBackend);
  ~RankExecutor();

  /// \param threads  number of threads that draw, including the caller's, >= 1;
  /// the bits do not depend on it
  void initialise(const InitialValues &initial, int threads = 1);
  StepOutput step(const StepInput &input);
  /// Returns the reports of a forward pass without dropout. It changes and
  /// counts nothing that training keeps from step to step.
  std::map<std::string, double> evaluate(const StepInput &input);

  const RankPlace &place() const { return where; }
  const Stage &stage() const { return own; }
  /// Reads the tensor of a layer and of micro-batch 0 in the state of the last
  /// settle(). May be called from any thread.
  void look(const Tensor &tensor, int copy,
            const std::function<void(const std::byte *)> &see) const;
  /// Changes a tensor, or a part of it. Not allowed during a step.
  void change(const Tensor &tensor, int copy,
              const std::function<void(std::byte *)> &fill);
  /// Waits until all queued work is complete. A step may return earlier.
  void settle();
  const std::map<CollectiveCount, std::int64_t> &collectives() const {
    return counted;
  }
  TimeSpent timeSpent() const;
  /// Returns times in the order of the stage's programs, then that of the
  /// gradient norm.
  std::vector<InstructionTime> instructionTimes() const;
  /// Returns the flops of the kernels of one step of this rank.
  double flops() const { return programs->flops(); }

private:
  /// A part of a step that is queued the same way every time.
  struct Part {
    int times = 0;
    bool mayBeRecorded = true;            ///< the host only queues in it
    std::unique_ptr<RecordedCalls> calls; ///< null: no calls to repeat
    /// Contains the calls; destroyed before their marks.
    std::unique_ptr<Recording> recording;
    std::map<CollectiveCount, std::int64_t> counts; ///< of one execution
  };

  void registerArenas();
  void prepareOwnKernels();
  World &carrier() { return carries ? *carries : world; }

  void queue(Part &part, const StepInput &input,
             const std::function<void()> &work);
  void runSchedule(const StepInput &input, bool reportsAlone);
  /// Stores the inputs of the step for what is queued or replayed next.
  void feed(const StepInput &input, bool drops);
  /// Queued first: copies the step's numbers and clears the reports.
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
  /// The numbers that kernels read, and their sources, copied before the step
  /// and before its update; the host's kernels read the last source directly.
  Allocation numbers, stepNumbers, updateNumbers;
  /// One LongSum each, the second on the host.
  Allocation squareSums, normOfOwn;
  Allocation allSquareSums; ///< of all ranks
  Results results;
  std::unique_ptr<World> carries; ///< null: `world` transports
  /// Null: this rank is not in it.
  std::vector<std::unique_ptr<Communicator>> groups;
  std::unique_ptr<Communicator> everyone;
  std::unique_ptr<Communicator> everyoneThere; ///< on devices; null: none
  std::map<CollectiveCount, std::int64_t> counted;
  std::unique_ptr<RankPrograms> programs;
  std::unique_ptr<Kernel> clearSquares, squares;
  std::unique_ptr<Kernel> gradientFactor; ///< null: no device decides
  int sumsAreThere = 0;                   ///< an event
  std::vector<std::string> reported;      ///< by any stage
  Part forward, update, evaluation;
  double secondsOfSteps = 0.0;
  double secondsOfNorm = 0.0;
  std::unique_ptr<StepTimes> stepTimes;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_RANK_EXECUTOR_H
