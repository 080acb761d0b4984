//===- tasks.h - Instructions that are ready to run -------------*- C++ -*-===//
//
// This file also defines the inputs and outputs of a step, which tasks use.
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

/// Holds the time of an instruction, summed over all timed steps so far.
struct InstructionTime {
  /// A null pointer stands for the gradient norm, which is in no program. The
  /// norm's time covers this rank's sum of squares and, if devices decide about
  /// the update, the exchange of these sums.
  const Instruction *instruction = nullptr;
  double seconds = 0.0;
};

/// Holds the inputs of a step, which are the same on every rank.
struct StepInput {
  StepData *data = nullptr;
  std::uint64_t seed = 1;
  std::int64_t step = 1; ///< counted from 1
  UpdateNumbers update;  ///< gradientFactor is ignored if there is a rule
  /// Multiplies the loss and thereby all gradients. Reports do not contain the
  /// scale.
  double lossScale = 1.0;
  /// Serializes the streams of a device to time each instruction alone. A timed
  /// step has no overlap, and is neither recorded nor replayed. A backend
  /// without a queue times all steps.
  bool isTimed = false;
  /// Receives the start and end of each instruction of a timed step, unless
  /// null.
  std::vector<InstructionRun> *trace = nullptr;
  /// Decides about clipping, loss scale and non-finite norms, identically on
  /// all ranks. If null, every step updates the parameters.
  UpdateRule *rule = nullptr;
  /// Runs before the update changes parameters and moments; may be empty.
  std::function<void()> beforeUpdate;
};

/// Holds the outputs of a step, which are the same on every rank.
struct StepOutput {
  std::map<std::string, double> reports; ///< by label, summed over layers
  double gradientNorm = 0.0; ///< norm over all parameters, before clipping
  bool skipped = false;      ///< nothing was updated
};

/// Identifies calls that are counted together. `phase` is the program's phase:
/// "forward", "backward" or "update". Overlapped collectives belong to
/// "update". `kind` and `group` are the kind and the group of the collective or
/// message.
struct CollectiveCount {
  std::string phase, kind, group;
  std::int64_t bytes = 0; ///< one rank's input of a collective
  bool operator==(const CollectiveCount &) const = default;
  bool operator<(const CollectiveCount &other) const {
    return std::tie(phase, kind, group, bytes) <
           std::tie(other.phase, other.kind, other.group, other.bytes);
  }
};

/// Holds seconds, summed over all timed steps so far. `steps` also includes
/// gaps between instructions and the hosts' exchange of norms.
struct TimeSpent {
  double kernels = 0.0, collectives = 0.0, transfers = 0.0, data = 0.0,
         steps = 0.0;
};

/// Holds numbers that the queue copies to the host during a step. Callers may
/// read the numbers when the queue has completed the copies.
class Results {
public:
  /// \param most  limit of the numbers between two calls of clear()
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

struct TaskRun {
  const StepInput *input = nullptr;
  int firstCopy = 0; ///< Program::firstCopy
  int copy = 0, microBatch = 0;
};

class Task {
public:
  Task(const ArenaMemory &theMemory, const Instruction &theInstruction)
      : memory(theMemory), instruction(theInstruction) {}
  virtual ~Task() = default;
  /// Prepares the host's data for all runs of a step, before the step begins.
  virtual void feed(const StepInput & /*input*/) {}
  /// Queues the instruction, or executes it if the backend has no queue.
  virtual void run(const TaskRun &run) = 0;
  /// Returns whether another task does the work of this run, as in a batch.
  virtual bool isIdle(const TaskRun & /*run*/) const { return false; }
  /// Returns the member of TimeSpent that includes the task's time.
  virtual double TimeSpent::*account() const = 0;
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

/// Holds the context of all tasks of a rank. The context must outlive the
/// tasks.
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

/// Returns the settings of an instruction's kernel, and this rank's views of
/// the instruction's tensors.
KernelSpec specOf(const RankCoordinates &place, const Instruction &instruction);

std::unique_ptr<Task> kernelTask(const ArenaMemory &memory,
                                 const Instruction &instruction,
                                 std::unique_ptr<Kernel> kernel,
                                 const StepNumbers *numbers);

/// Prepares the task of an instruction.
/// \param phase  the program's phase, as in CollectiveCount
/// \throws std::runtime_error if the backend or the rank does not support the
/// instruction
std::unique_ptr<Task> prepareTask(const TaskContext &all,
                                  const Instruction &instruction,
                                  const std::string &phase);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_TASKS_H
