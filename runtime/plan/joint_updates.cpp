//===- joint_updates.cpp - Updates that may be one kernel -----------------===//

#include "runtime/plan/joint_updates.h"

#include <string>

#include "runtime/plan/index.h"
#include "runtime/plan/instruction_side.h"
#include "runtime/plan/runs_apart.h"

namespace mtplan::runtime {

namespace {

/// "" if it is none, or the host's.
std::string kernelOf(const Stage &stage, const Instruction &instruction) {
  const auto *call = std::get_if<KernelCall>(&instruction.what);
  return call && sideOf(stage, instruction) == Side::device ? call->kernel : "";
}

bool mayBeOne(const Stage &stage, const JointUpdates &joint) {
  const ScheduleEntry &entry = stage.apply[joint.entry];
  const auto &all = stage.programs[indexed(entry.program)].instructions;
  const int together = joint.ofAllCopies ? entry.count : 1;
  for (int i = 0; i < entry.count; i += together) {
    RunsApart kernels(stage);
    for (int j = i; j < i + together; ++j)
      for (std::size_t k = joint.first; k < joint.end; ++k)
        kernels.add(all[k], entry.first + j * entry.step, entry.microBatch);
    if (!kernels.areSeveral())
      return false;
  }
  return true;
}

} // namespace

std::vector<JointUpdates> jointUpdates(const Stage &stage) {
  std::vector<int> uses(stage.programs.size());
  for (const auto *entries : {&stage.schedule, &stage.reduce, &stage.apply})
    for (const ScheduleEntry &entry : *entries)
      ++uses[indexed(entry.program)];
  std::vector<JointUpdates> joints;
  for (std::size_t e = 0; e < stage.apply.size(); ++e) {
    const int program = stage.apply[e].program;
    if (uses[indexed(program)] != 1)
      continue;
    const auto &all = stage.programs[indexed(program)].instructions;
    for (std::size_t first = 0, end = 0; first < all.size(); first = end) {
      const std::string kernel = kernelOf(stage, all[first]);
      do
        ++end;
      while (end < all.size() && all[end].stream == all[first].stream &&
             all[end].waits.empty() && kernelOf(stage, all[end]) == kernel);
      const JointUpdates joint{e, first, end, end - first == all.size()};
      if (!kernel.empty() && mayBeOne(stage, joint))
        joints.push_back(joint);
    }
  }
  return joints;
}

} // namespace mtplan::runtime
