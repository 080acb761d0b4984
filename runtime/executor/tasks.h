//===- tasks.h - Instructions that are ready to run -------------*- C++ -*-===//
//
// Also defines the inputs and outputs of a step, which tasks read and write.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_TASKS_H
#define MTPLAN_RUNTIME_EXECUTOR_TASKS_H

#include <cstdint>
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
#include "runtime/executor/rank_coordinates.h"
#include "runtime/executor/step_data.h"
#include "runtime/executor/step_times.h"
#include "runtime/plan/plan.h"
#include "runtime/training/update_rule.h"

namespace mtplan::runtime {

/// Holds the time of an instruction of the rank's stage, summed over all timed
/// steps so far.
struct InstructionTime {
  /// Is null for the gradient norm, which no program contains. The norm's time
  /// covers this rank's sum, and the exchange of sums if devices make the
  /// decision.
  const Instruction *instruction = nullptr;
  double seconds = 0.0;
};

/// Holds the inputs of a step, which are the same on every rank.
struct StepInput {
  StepData *data = nullptr;
  std::uint64_t seed = 1;
  std::int64_t step = 1; ///< counted from 1
  UpdateNumbers update;  ///< gradientFactor is ignored if there is a rule
  /// Multiplies the loss and thereby all gradients; reports are unscaled.
  double lossScale = 1.0;
  /// Serializes the streams of a device to time each instruction alone: nothing
  /// overlaps, and nothing is recorded or replayed. If kernels run when they
  /// are called, all steps are timed.
  bool isTimed = false;
  /// Receives the start and end of each instruction of a timed step; may be
  /// null.
  std::vector<InstructionRun> *trace = nullptr;
  /// Decides about clipping, loss scale and non-finite norms, identically on
  /// all ranks. If null, every step updates.
  UpdateRule *rule = nullptr;
  /// Is called before the update changes parameters and moments; may be empty.
  std::function<void()> beforeUpdate;
};

/// Holds the outputs of a step, which are the same on every rank.
struct StepOutput {
  std::map<std::string, double> reports; ///< by label, summed over layers
  double gradientNorm = 0.0; ///< norm over all parameters, before clipping
  bool skipped = false;      ///< nothing was updated
};

/// Identifies calls that are counted together. `phase` is that of the program:
/// "forward", "backward" or "update"; overlapped collectives belong to
/// "update". `kind` and `group` are those of the collective or message.
struct CollectiveCount {
  std::string phase, kind, group;
  std::int64_t bytes = 0; ///< one rank's input of a collective
  bool operator==(const CollectiveCount &) const = default;
  bool operator<(const CollectiveCount &other) const {
    return std::tie(phase, kind, group, bytes) <
           std::tie(other.phase, other.kind, other.group, other.bytes);
  }
};

/// Holds seconds, summed over all timed steps so far. `steps` also includes the
/// hosts' exchange of norms and gaps between instructions.
struct TimeSpent {
  double kernels = 0.0, collectives = 0.0, transfers = 0.0, data = 0.0,
         steps = 0.0;
};

/// Holds numbers that the queue copies to the host during a step. They may be
/// read when the queue has completed the copies.
class Results {
public:
  /// \param most  the most numbers that are kept between two calls of clear()
  Results(Memory &theMemory, std::size_t most)
      : memory(theMemory), places(theMemory.staging(), most * kPlace) {}

  void clear() { kept.clear(); }
  /// Queues the copy of one number from the backend's memory.
  void keep(const std::string &label, ElementType type, const void *number);

  /// Returns the sum of each label's numbers, added in the order of keep().
  std::map<std::string, double> sums() const;

private:
  static constexpr std::size_t kPlace = 8; ///< bytes of a slot, for any type

  struct Kept {
    std::string label;
    ElementType type = ElementType::f32;
  };
  Memory &memory;
  Allocation places;
  std::vector<Kept> kept;
};

/// Holds the arguments of a task that differ between runs.
struct TaskRun {
  const StepInput *input = nullptr;
  int firstCopy = 0; ///< Program::firstCopy
  int copy = 0, microBatch = 0;
};

/// Runs a prepared instruction.
class Task {
public:
  Task(const ArenaMemory &theMemory, const Instruction &theInstruction)
      : memory(theMemory), instruction(theInstruction) {}
  virtual ~Task() = default;
  /// Stages the host's data for all runs of a step, before the step.
  virtual void feed(const StepInput & /*input*/) {}
  /// Queues the instruction, or executes it if the backend has no queue.
  virtual void run(const TaskRun &run) = 0;
  /// Returns whether another task does the work of this run, as in a batch.
  virtual bool isIdle(const TaskRun & /*run*/) const { return false; }
  /// Returns the member of TimeSpent to which the task's time belongs.
  virtual double TimeSpent::*account() const = 0;
  /// Returns the flops of one run.
  virtual double flops() const { return 0.0; }

  double seconds = 0.0; ///< summed over all runs in timed steps

protected:
  const std::byte *input(std::size_t i, const TaskRun &run) const {
    return memory.at(instruction.inputs[i], run.copy, run.microBatch);
  }
  std::byte *output(std::size_t i, const TaskRun &run) const {
    return memory.at(instruction.outputs[i], run.copy, run.microBatch);
  }

  const ArenaMemory &memory;
  const Instruction &instruction;
};

/// Holds the context that all tasks of a rank share, and that must outlive
/// them.
struct TaskContext {
  const Plan &plan;
  const Stage &stage; ///< the rank's stage
  const RankCoordinates &place;
  const ArenaMemory &memory;
  Backend &backend;
  World &carrier; ///< transports messages
  /// Holds the communicator of each group of the plan; null if this rank is not
  /// in the group.
  const std::vector<std::unique_ptr<Communicator>> &groups;
  Results &results;
  std::map<CollectiveCount, std::int64_t> &counted;
  const StepNumbers *numbers;     ///< read by device kernels
  const StepNumbers *hostNumbers; ///< read by host kernels
};

/// Returns the kernel's specification for this rank: settings and local views.
KernelSpec specOf(const RankCoordinates &place, const Instruction &instruction);

/// Returns a task that runs `kernel` on the instruction's tensors.
std::unique_ptr<Task> kernelTask(const ArenaMemory &memory,
                                 const Instruction &instruction,
                                 std::unique_ptr<Kernel> kernel,
                                 const StepNumbers *numbers);

/// Prepares an instruction. Throws std::runtime_error if the backend or the
/// rank does not support it.
/// \param phase  the program's phase, as in CollectiveCount
std::unique_ptr<Task> prepareTask(const TaskContext &all,
                                  const Instruction &instruction,
                                  const std::string &phase);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_TASKS_H
