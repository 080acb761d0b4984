//===- join_updates.cpp - Multi-tensor updates ----------------------------===//
//
// Runs the updates of joint_updates.h as one kernel, if the backend has one.
//
//===----------------------------------------------------------------------===//

#include <map>
#include <utility>

#include "base/index.h"
#include "runtime/executor/task.h"

namespace mtplan::runtime {

using base::sized;

namespace {

/// An update among several. The first one runs all, for one layer, or for all
/// layers at the first; the events of the others are recorded later than
/// necessary, on the same stream.
class JoinedTask : public RankExecutor::Task {
public:
  using Kernels = std::map<int, std::unique_ptr<Kernel>>; ///< by layer

  /// \param theAlone  runs this update alone
  JoinedTask(const ArenaMemory &theMemory, const Instruction &what,
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

void RankExecutor::joinUpdates() {
  for (const JointUpdates &joint : jointUpdates(own))
    join(joint);
}

void RankExecutor::join(const JointUpdates &joint) {
  const ScheduleEntry &entry = own.apply[joint.entry];
  const std::size_t first = joint.first, end = joint.end;
  const auto &all = own.programs[sized(entry.program)].instructions;
  auto &tasks = programs[sized(entry.program)];
  const int together = joint.ofAllCopies ? entry.count : 1;
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
