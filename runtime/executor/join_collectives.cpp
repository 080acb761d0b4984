//===- join_collectives.cpp - Grouped collectives -------------------------===//
//
// Issues the collectives of joint_collectives.h as one grouped call, if the
// communicator benefits.
//
//===----------------------------------------------------------------------===//

#include <utility>

#include "base/index.h"
#include "runtime/executor/task.h"
#include "runtime/plan/joint_collectives.h"

namespace mtplan::runtime {

using base::sized;

namespace {

/// The first collective of a group, which makes all their calls.
class AllCollectives : public RankExecutor::Task {
public:
  AllCollectives(const ArenaMemory &theMemory, const Instruction &what,
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

/// A later collective of a group. Its event is recorded later than necessary,
/// on the same stream.
class JoinedCollective : public RankExecutor::Task {
public:
  using Task::Task;
  void run(const TaskRun & /*run*/) override {}
  bool isIdle(const TaskRun & /*run*/) const override { return true; }
  double TimeSpent::*account() const override {
    return &TimeSpent::collectives;
  }
};

} // namespace

// An evaluation makes only some calls, so a group belongs to evaluations or to
// training only.
void RankExecutor::joinCollectives() {
  for (const JointCollectives &joint : jointCollectives(plan, own)) {
    const std::vector<bool> &wanted = reporting[sized(joint.program)];
    for (std::size_t first = joint.first, end = first; first < joint.end;
         first = end) {
      do
        ++end;
      while (end < joint.end && wanted[end] == wanted[first]);
      if (end > first + 1)
        join(JointCollectives{joint.program, first, end});
    }
  }
}

void RankExecutor::join(const JointCollectives &joint) {
  const auto &all = own.programs[sized(joint.program)].instructions;
  const auto &call = std::get<Collective>(all[joint.first].what);
  Communicator &group = *groups[sized(call.group)];
  if (!group.joins())
    return;
  auto &its = programs[sized(joint.program)];
  std::vector<std::unique_ptr<Task>> tasks;
  for (std::size_t i = joint.first; i < joint.end; ++i)
    tasks.push_back(std::exchange(
        its[i], std::make_unique<JoinedCollective>(memory, all[i])));
  its[joint.first] = std::make_unique<AllCollectives>(memory, all[joint.first],
                                                      group, std::move(tasks));
}

} // namespace mtplan::runtime
