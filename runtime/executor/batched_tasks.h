//===- batched_tasks.h - Instructions that are one launch -------*- C++ -*-===//
//
// Carries out the batches of a plan. A batch stays a list of single
// instructions if the backend has no kernel for it; the bits are the same.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_BATCHED_TASKS_H
#define MTPLAN_RUNTIME_EXECUTOR_BATCHED_TASKS_H

#include <memory>
#include <vector>

#include "runtime/executor/tasks.h"
#include "runtime/plan/program_runs.h"

namespace mtplan::runtime {

/// Runs the products of a batch as one, if the backend can.
/// \param tasks  of the program, by instruction
void batchProducts(const TaskContext &all, int program, const Batch &batch,
                   std::vector<std::unique_ptr<Task>> &tasks);

/// Runs the updates of a batch as one kernel, if the backend can.
/// \param entry  of Stage::apply, the only one that runs the program
void batchUpdates(const TaskContext &all, const ScheduleEntry &entry,
                  const Batch &batch,
                  std::vector<std::unique_ptr<Task>> &tasks);

/// Issues collectives as one grouped call of their communicator.
/// \param members  consecutive instructions of the program
void groupCollectives(const ArenaMemory &memory, const Program &program,
                      const std::vector<int> &members, Communicator &group,
                      std::vector<std::unique_ptr<Task>> &tasks);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_BATCHED_TASKS_H
