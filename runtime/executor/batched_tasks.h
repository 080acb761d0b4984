//===- batched_tasks.h - Instructions that are one launch -------*- C++ -*-===//
//
// These functions replace the tasks of a batch by one launch. If the backend
// has no kernel for the batch, the tasks stay single launches, which compute
// the same bits.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_BATCHED_TASKS_H
#define MTPLAN_RUNTIME_EXECUTOR_BATCHED_TASKS_H

#include <memory>
#include <vector>

#include "runtime/executor/tasks.h"
#include "runtime/plan/program_runs.h"

namespace mtplan::runtime {

/// \param tasks  the program's tasks, by instruction
void batchProducts(const TaskContext &all, int program, const Batch &batch,
                   std::vector<std::unique_ptr<Task>> &tasks);

/// \param entry  the entry of Stage::apply that runs the program
void batchUpdates(const TaskContext &all, const ScheduleEntry &entry,
                  const Batch &batch,
                  std::vector<std::unique_ptr<Task>> &tasks);

/// Issues collectives as one grouped call of `group`.
/// \param members  consecutive instructions of the program
void groupCollectives(const ArenaMemory &memory, const Program &program,
                      const std::vector<int> &members, Communicator &group,
                      std::vector<std::unique_ptr<Task>> &tasks);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_BATCHED_TASKS_H
