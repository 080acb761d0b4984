//===- batched_tasks.cpp - Instructions that are one launch ---------------===//

#include "runtime/executor/batched_tasks.h"

#include <map>
#include <utility>

#include "base/index.h"

namespace mtplan::runtime {

using base::sized;

namespace {

/// Runs a product in a batch. The first task runs the whole batch, and the
/// other tasks do nothing. The events of the other tasks remain valid, because
/// they are recorded after the launch on the same stream.
class BatchedProduct : public Task {
public:
  /// \param theAlone  the task of this product alone
  /// \param theAll    the task of the batch; null for all but the first product
  BatchedProduct(const ArenaMemory &theMemory, const Instruction &what,
                 std::unique_ptr<Task> theAlone, std::unique_ptr<Task> theAll)
      : Task(theMemory, what), alone(std::move(theAlone)),
        all(std::move(theAll)) {}

  void run(const TaskRun &run) override { all->run(run); }
  bool isIdle(const TaskRun & /*run*/) const override { return !all; }
  double TimeSpent::*account() const override { return alone->account(); }
  double flops() const override { return alone->flops(); }

private:
  const std::unique_ptr<Task> alone, all;
};

/// Issues the collectives of a launch as one grouped call. This task replaces
/// the task of the first collective.
class GroupedCollectives : public Task {
public:
  GroupedCollectives(const ArenaMemory &theMemory, const Instruction &what,
                     Communicator &theGroup,
                     std::vector<std::unique_ptr<Task>> theTasks)
      : Task(theMemory, what), group(theGroup), tasks(std::move(theTasks)) {}

  void run(const TaskRun &run) override {
    group.together([&] {
      for (const std::unique_ptr<Task> &task : tasks)
        task->run(run);
    });
  }
  double TimeSpent::*account() const override {
    return &TimeSpent::collectives;
  }

private:
  Communicator &group;
  const std::vector<std::unique_ptr<Task>> tasks;
};

/// Does nothing. This task replaces the task of each further collective of the
/// launch.
class GroupedCollective : public Task {
public:
  using Task::Task;
  void run(const TaskRun & /*run*/) override {}
  bool isIdle(const TaskRun & /*run*/) const override { return true; }
  double TimeSpent::*account() const override {
    return &TimeSpent::collectives;
  }
};

/// Runs an update in a batch. The first task of the batch runs all updates of
/// the batch. Either each run covers its own layer, or the first layer's run
/// covers all layers.
class BatchedUpdate : public Task {
public:
  using Kernels = std::map<int, std::unique_ptr<Kernel>>; ///< by layer

  BatchedUpdate(const ArenaMemory &theMemory, const Instruction &what,
                std::unique_ptr<Task> theAlone, Kernels theKernels,
                const StepNumbers *theNumbers)
      : Task(theMemory, what), alone(std::move(theAlone)),
        kernels(std::move(theKernels)), numbers(theNumbers) {}

  void run(const TaskRun &run) override {
    kernels.at(run.copy)->run({nullptr, nullptr, numbers});
  }
  bool isIdle(const TaskRun &run) const override {
    return !kernels.contains(run.copy);
  }
  double TimeSpent::*account() const override { return alone->account(); }
  double flops() const override { return alone->flops(); }

private:
  const std::unique_ptr<Task> alone;
  const Kernels kernels;
  const StepNumbers *const numbers;
};

} // namespace

void batchProducts(const TaskContext &all, int program, const Batch &batch,
                   std::vector<std::unique_ptr<Task>> &tasks) {
  const auto &instructions = all.stage.programs[sized(program)].instructions;
  const Instruction &first = instructions[sized(batch.instructions.front())];
  const BatchSteps steps = stepsOf(all.stage, program, batch);
  all.backend.queue().select(first.stream);
  std::unique_ptr<Kernel> kernel = all.backend.prepareEven(
      specOf(all.place, first),
      {static_cast<std::int64_t>(batch.instructions.size()), steps.inputs,
       steps.outputs});
  if (!kernel)
    return;
  std::unique_ptr<Task> whole =
      kernelTask(all.memory, first, std::move(kernel), all.numbers);
  for (const int i : batch.instructions) {
    std::unique_ptr<Task> &task = tasks[sized(i)];
    task = std::make_unique<BatchedProduct>(all.memory, instructions[sized(i)],
                                            std::move(task),
                                            std::exchange(whole, nullptr));
  }
}

void batchUpdates(const TaskContext &all, const ScheduleEntry &entry,
                  const Batch &batch,
                  std::vector<std::unique_ptr<Task>> &tasks) {
  const auto &instructions =
      all.stage.programs[sized(entry.program)].instructions;
  const int together = batch.ofAllCopies ? entry.count : 1;
  all.backend.queue().select(
      instructions[sized(batch.instructions.front())].stream);
  BatchedUpdate::Kernels kernels;
  for (int i = 0; i < entry.count; i += together) {
    std::vector<FixedRun> runs;
    for (int j = i; j < i + together; ++j)
      for (const int t : batch.instructions) {
        const Instruction &one = instructions[sized(t)];
        const auto at = [&](const Tensor &tensor) {
          return all.memory.at(tensor, entry.first + j * entry.step,
                               entry.microBatch);
        };
        FixedRun run{specOf(all.place, one), {}, {}};
        for (const Tensor &tensor : one.inputs)
          run.inputs.push_back(at(tensor));
        for (const Tensor &tensor : one.outputs)
          run.outputs.push_back(at(tensor));
        runs.push_back(std::move(run));
      }
    std::unique_ptr<Kernel> kernel = all.backend.prepareTogether(runs);
    if (!kernel)
      return;
    kernels[entry.first + i * entry.step] = std::move(kernel);
  }
  for (const int t : batch.instructions) {
    std::unique_ptr<Task> &task = tasks[sized(t)];
    task = std::make_unique<BatchedUpdate>(
        all.memory, instructions[sized(t)], std::move(task),
        std::exchange(kernels, {}), all.numbers);
  }
}

void groupCollectives(const ArenaMemory &memory, const Program &program,
                      const std::vector<int> &members, Communicator &group,
                      std::vector<std::unique_ptr<Task>> &tasks) {
  std::vector<std::unique_ptr<Task>> calls;
  calls.reserve(members.size());
  for (const int i : members)
    calls.push_back(std::exchange(tasks[sized(i)],
                                  std::make_unique<GroupedCollective>(
                                      memory, program.instructions[sized(i)])));
  const int first = members.front();
  tasks[sized(first)] = std::make_unique<GroupedCollectives>(
      memory, program.instructions[sized(first)], group, std::move(calls));
}

} // namespace mtplan::runtime
