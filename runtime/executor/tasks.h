//===- tasks.h - Instructions that are ready to run -------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_TASKS_H
#define MTPLAN_RUNTIME_EXECUTOR_TASKS_H

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/backend/kernel.h"
#include "runtime/communicator/communicator.h"
#include "runtime/executor/arena_memory.h"
#include "runtime/executor/rank_place.h"
#include "runtime/executor/results.h"
#include "runtime/executor/step.h"

namespace mtplan::runtime {

/// The arguments of a task that differ between runs.
struct TaskRun {
  const StepInput *input = nullptr;
  int firstCopy = 0; ///< Program::firstCopy
  int copy = 0, microBatch = 0;
};

/// A prepared instruction.
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

/// The context that all tasks of a rank share, and that must outlive them.
struct TaskContext {
  const Plan &plan;
  const Stage &stage; ///< of the rank
  const RankPlace &place;
  const ArenaMemory &memory;
  Backend &backend;
  World &carrier; ///< transports messages
  /// By group of the plan; null if this rank is not in it.
  const std::vector<std::unique_ptr<Communicator>> &groups;
  Results &results;
  std::map<CollectiveCount, std::int64_t> &counted;
  const StepNumbers *numbers;     ///< read by device kernels
  const StepNumbers *hostNumbers; ///< read by host kernels
};

/// Returns the kernel's specification for this rank: settings and local views.
KernelSpec specOf(const RankPlace &place, const Instruction &instruction);

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
