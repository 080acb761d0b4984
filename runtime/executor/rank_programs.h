//===- rank_programs.h - The programs of a rank, ready to run ---*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_RANK_PROGRAMS_H
#define MTPLAN_RUNTIME_EXECUTOR_RANK_PROGRAMS_H

#include <memory>
#include <string>
#include <vector>

#include "runtime/executor/stream_order.h"
#include "runtime/executor/tasks.h"

namespace mtplan::runtime {

/// Prepares the instructions of a rank's stage, and its batches as one launch
/// each where the backend or the group has one for them.
class RankPrograms {
public:
  /// Throws std::runtime_error for what the backend or the rank cannot do.
  explicit RankPrograms(const TaskContext &context);

  /// Stores the host's inputs of a step for what runs next.
  void feed(const StepInput &input);
  /// Queues the runs of a schedule entry.
  /// \param reportsAlone  queues only what an evaluation needs
  void run(const ScheduleEntry &entry, const StepInput &input,
           bool reportsAlone, StepTimes &times);
  /// Ends overlapped instructions at the end of the schedule.
  void endOverlap();

  /// Whether the host computes in the program.
  bool hasHost(int program) const;
  /// Returns the flops of the kernels of one step.
  double flops() const;
  /// Adds the seconds of all timed steps to their accounts.
  void addTo(TimeSpent &spent) const;
  /// Returns times in the order of the stage's programs.
  std::vector<InstructionTime> instructionTimes() const;

private:
  using Tasks = std::vector<std::unique_ptr<Task>>; ///< by instruction

  void findReporting();
  void batchTasks();
  void batchCollectives(std::size_t program, const Batch &batch);

  const TaskContext all;
  std::vector<Tasks> programs;
  std::vector<StreamOrder> orders; ///< by program
  /// By program: the instructions that an evaluation runs.
  std::vector<std::vector<bool>> reporting;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_RANK_PROGRAMS_H
