//===- join_collectives.cpp - Collectives that are one --------------------===//
//
// Where those of joint_collectives.h are one to their group.
//
//===----------------------------------------------------------------------===//

#include <utility>

#include "runtime/executor/task.h"
#include "runtime/plan/joint_collectives.h"

namespace mtplan::runtime {

namespace {

std::size_t sized(std::int64_t number) {
  return static_cast<std::size_t>(number);
}

/// The first of collectives that are joined, which makes all their calls.
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

/// One of the others. Its event comes later than need be, on the same stream.
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

// An evaluation makes some calls and not others: one is of either.
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
