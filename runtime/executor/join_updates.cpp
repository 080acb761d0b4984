//===- join_updates.cpp - Updates that are one kernel ---------------------===//
//
// A layer has a dozen parameters, most of them small, and what updates one
// takes a device less time than to begin it. Updates that follow each other on
// a stream and wait for nothing between them are one kernel where the backend
// has one for them; if there is nothing else in a program, those of all its
// copies are.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/backend/fixed_runs.h"
#include "runtime/executor/task.h"
#include "runtime/plan/instruction_side.h"

namespace mtplan::runtime {

namespace {

std::size_t sized(std::int64_t number) {
  return static_cast<std::size_t>(number);
}

/// An instruction that is joined with others. The first of them runs all, of
/// one copy or of all at the first; events of the others then come later than
/// need be, on the same stream.
class JoinedTask : public RankExecutor::Task {
public:
  using Kernels = std::map<int, std::unique_ptr<Kernel>>; ///< by copy

  /// \param theAlone  does it without the others
  JoinedTask(const ArenaMemory &theMemory, const Instruction &what,
             std::unique_ptr<Task> theAlone, Kernels theKernels,
             const StepNumbers *theNumbers)
      : Task(theMemory, what), alone(std::move(theAlone)),
        kernels(std::move(theKernels)), numbers(theNumbers) {}

  void run(const TaskRun &run) override {
    if (auto found = kernels.find(run.copy); found != kernels.end())
      found->second->run({nullptr, nullptr, numbers});
  }
  double TimeSpent::*account() const override { return alone->account(); }
  double flops() const override { return alone->flops(); }

private:
  const std::unique_ptr<Task> alone;
  const Kernels kernels;
  const StepNumbers *const numbers;
};

} // namespace

void RankExecutor::joinUpdates() {
  std::vector<int> uses(programs.size());
  for (const auto *entries : {&own.schedule, &own.reduce, &own.apply})
    for (const ScheduleEntry &entry : *entries)
      ++uses[sized(entry.program)];
  for (const ScheduleEntry &entry : own.apply)
    if (uses[sized(entry.program)] == 1)
      joinUpdates(entry);
}

void RankExecutor::joinUpdates(const ScheduleEntry &entry) {
  const auto &all = own.programs[sized(entry.program)].instructions;
  auto kernelOf = [&](std::size_t i) {
    const auto *call = std::get_if<KernelCall>(&all[i].what);
    return call && sideOf(own, all[i]) == Side::device ? call->kernel : "";
  };
  for (std::size_t first = 0, end = 0; first < all.size(); first = end) {
    const std::string kernel = kernelOf(first);
    do
      ++end;
    while (end < all.size() && all[end].stream == all[first].stream &&
           all[end].waits.empty() && kernelOf(end) == kernel);
    if (!kernel.empty())
      join(entry, first, end);
  }
}

void RankExecutor::join(const ScheduleEntry &entry, std::size_t first,
                        std::size_t end) {
  const auto &all = own.programs[sized(entry.program)].instructions;
  auto &tasks = programs[sized(entry.program)];
  const int together = end - first == all.size() ? entry.count : 1;
  backend.queue().select(all[first].stream);
  JoinedTask::Kernels kernels;
  for (int i = 0; i < entry.count; i += together) {
    std::vector<FixedRun> runs;
    for (int j = i; j < i + together; ++j)
      for (std::size_t t = first; t < end; ++t) {
        auto at = [&](const Tensor &tensor) {
          return memory.at(tensor, entry.first + j * entry.step,
                           entry.microBatch);
        };
        FixedRun run{specOf(all[t]), {}, {}};
        for (const Tensor &tensor : all[t].inputs)
          run.inputs.push_back(at(tensor));
        for (const Tensor &tensor : all[t].outputs)
          run.outputs.push_back(at(tensor));
        runs.push_back(std::move(run));
      }
    if (runs.size() < 2 || !areApart(runs))
      return;
    std::unique_ptr<Kernel> kernel = backend.prepareTogether(runs);
    if (!kernel)
      return;
    kernels[entry.first + i * entry.step] = std::move(kernel);
  }
  for (std::size_t t = first; t < end; ++t)
    tasks[t] = std::make_unique<JoinedTask>(memory, all[t], std::move(tasks[t]),
                                            std::exchange(kernels, {}),
                                            numbers.as<const StepNumbers>());
}

} // namespace mtplan::runtime
