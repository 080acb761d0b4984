//===- joint_collectives.cpp - Collectives that may be one ----------------===//

#include "runtime/plan/joint_collectives.h"

#include "runtime/plan/index.h"
#include "runtime/plan/program_runs.h"
#include "runtime/plan/runs_apart.h"

namespace mtplan::runtime {

namespace {

/// Null: it is none, or not to be joined.
const Collective *collectiveOf(const Instruction &instruction) {
  const auto *call = std::get_if<Collective>(&instruction.what);
  return call && call->kind != CollectiveKind::allToAll ? call : nullptr;
}

bool mayFollow(const Instruction &early, const Instruction &late) {
  const Collective *one = collectiveOf(early), *other = collectiveOf(late);
  return one && other && one->group == other->group &&
         early.stream == late.stream && late.waits.empty() &&
         early.overlapped == late.overlapped;
}

bool areApart(const Stage &stage, const std::vector<ProgramRun> &runs,
              const JointCollectives &joint) {
  const auto &all = stage.programs[indexed(joint.program)].instructions;
  for (const ProgramRun &run : runs) {
    RunsApart apart(stage);
    for (std::size_t i = joint.first; i < joint.end; ++i)
      apart.add(all[i], run.copy, run.microBatch);
    if (!apart.areSeveral())
      return false;
  }
  return true;
}

} // namespace

std::vector<JointCollectives> jointCollectives(const Stage &stage) {
  std::vector<JointCollectives> joints;
  for (std::size_t p = 0; p < stage.programs.size(); ++p) {
    const auto program = static_cast<int>(p);
    const auto &all = stage.programs[p].instructions;
    std::vector<ProgramRun> runs; // none: not looked up, or never run
    for (std::size_t first = 0, end = 0; first < all.size(); first = end) {
      for (end = first + 1;
           end < all.size() && mayFollow(all[end - 1], all[end]); ++end) {
        if (runs.empty())
          runs = runsOf(stage, program);
        if (!areApart(stage, runs, {program, first, end + 1}))
          break;
      }
      if (end > first + 1)
        joints.push_back({program, first, end});
    }
  }
  return joints;
}

} // namespace mtplan::runtime
