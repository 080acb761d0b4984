//===- task.h - An instruction that is ready to run -------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_TASK_H
#define MTPLAN_RUNTIME_EXECUTOR_TASK_H

#include "runtime/executor/rank_executor.h"

namespace mtplan::runtime {

/// The arguments that change from run to run.
struct TaskRun {
  const StepInput *input = nullptr;
  int firstCopy = 0; ///< of the program, in the model
  int copy = 0, microBatch = 0;
};

class RankExecutor::Task {
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

/// Makes a task that runs `kernel` on the instruction's operands and results.
std::unique_ptr<RankExecutor::Task> kernelTask(const ArenaMemory &memory,
                                               const Instruction &instruction,
                                               std::unique_ptr<Kernel> kernel,
                                               const StepNumbers *numbers);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_TASK_H
