//===- rank_programs.h - The programs of a rank, ready to run ---*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_RANK_PROGRAMS_H
#define MTPLAN_RUNTIME_EXECUTOR_RANK_PROGRAMS_H

#include <memory>
#include <string>
#include <vector>

#include "runtime/executor/stream_order.h"
#include "runtime/executor/tasks.h"

namespace mtplan::runtime {

/// Holds the prepared instructions of a rank's stage. Each batch is one launch
/// if the backend or the communicator supports that launch.
class RankPrograms {
public:
  /// \throws std::runtime_error for instructions that the backend lacks
  explicit RankPrograms(const TaskContext &context);

  /// Prepares the training data of a step for the runs that follow.
  void feed(const StepInput &input);
  /// Queues the runs of a schedule entry.
  /// \param reportsAlone  true: queues only instructions of an evaluation
  void run(const ScheduleEntry &entry, const StepInput &input,
           bool reportsAlone, StepTimes &times);
  /// Makes stream 0 wait for overlapped collectives, at the end of the
  /// schedule.
  void endOverlap();

  bool hasHost(int program) const;
  /// Returns the flops of the kernels of one step.
  double flops() const;
  /// Adds the seconds of all timed steps to `spent`.
  void addTo(TimeSpent &spent) const;
  std::vector<InstructionTime> instructionTimes() const;

private:
  using Tasks = std::vector<std::unique_ptr<Task>>; ///< by instruction

  void findReporting();
  void batchTasks();
  void batchCollectives(std::size_t program, const Batch &batch);

  const TaskContext all;
  std::vector<Tasks> programs;
  std::vector<StreamOrder> orders; ///< by program
  /// Says, by program and instruction, whether an evaluation runs the
  /// instruction.
  std::vector<std::vector<bool>> reporting;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_RANK_PROGRAMS_H
