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

/// The arguments that change from run to run.
struct TaskRun {
  const StepInput *input = nullptr;
  int firstCopy = 0; ///< of the program, in the model
  int copy = 0, microBatch = 0;
};

class Task {
public:
  Task(const ArenaMemory &theMemory, const Instruction &theInstruction)
      : memory(theMemory), instruction(theInstruction) {}
  virtual ~Task() = default;
  /// Stores the host's inputs of all its runs, before a step.
  virtual void feed(const StepInput & /*input*/) {}
  /// Queues the instruction.
  virtual void run(const TaskRun &run) = 0;
  /// Returns whether another task does the work of this run.
  virtual bool isIdle(const TaskRun & /*run*/) const { return false; }
  /// Returns the account of its time.
  virtual double TimeSpent::*account() const = 0;
  virtual double flops() const { return 0.0; }

  double seconds = 0.0; ///< of all runs in timed steps

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

/// What the tasks of a rank share. All of it must outlive them.
struct TaskContext {
  const Plan &plan;
  const Stage &stage; ///< the rank's
  const RankPlace &place;
  const ArenaMemory &memory;
  Backend &backend;
  World &carrier; ///< transports messages
  /// By group of the plan; null: this rank is not in it.
  const std::vector<std::unique_ptr<Communicator>> &groups;
  Results &results;
  std::map<CollectiveCount, std::int64_t> &counted;
  const StepNumbers *numbers;     ///< that the device's kernels read
  const StepNumbers *hostNumbers; ///< that the host's kernels read
};

/// Returns what a kernel has to compute on this rank.
KernelSpec specOf(const RankPlace &place, const Instruction &instruction);

/// Makes a task that runs `kernel` on the instruction's operands and results.
std::unique_ptr<Task> kernelTask(const ArenaMemory &memory,
                                 const Instruction &instruction,
                                 std::unique_ptr<Kernel> kernel,
                                 const StepNumbers *numbers);

/// Prepares an instruction. Throws std::runtime_error for what the backend or
/// the rank cannot do.
/// \param phase  of its program, as in CollectiveCount
std::unique_ptr<Task> prepareTask(const TaskContext &all,
                                  const Instruction &instruction,
                                  const std::string &phase);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_TASKS_H
