//===- joint_collectives.cpp - Collectives that may be one ----------------===//

#include "runtime/plan/joint_collectives.h"

#include "runtime/plan/group_within.h"
#include "runtime/plan/index.h"
#include "runtime/plan/program_runs.h"
#include "runtime/plan/runs_apart.h"

namespace mtplan::runtime {

namespace {

/// More at once gain nothing, and all are compared with each other.
constexpr std::size_t kMostTogether = 64;

/// Null: it is none, or not to be joined. Ranks of a communicator have to join
/// alike, and those of one stage do: they run the same program.
const Collective *collectiveOf(const Plan &plan, const Stage &stage,
                               const Instruction &instruction) {
  const auto *call = std::get_if<Collective>(&instruction.what);
  return call && call->kind != CollectiveKind::allToAll &&
                 isWithin(plan.groups[indexed(call->group)], stage)
             ? call
             : nullptr;
}

bool mayFollow(const Plan &plan, const Stage &stage, const Instruction &early,
               const Instruction &late) {
  const Collective *one = collectiveOf(plan, stage, early),
                   *other = collectiveOf(plan, stage, late);
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

std::vector<JointCollectives> jointCollectives(const Plan &plan,
                                               const Stage &stage) {
  std::vector<JointCollectives> joints;
  for (std::size_t p = 0; p < stage.programs.size(); ++p) {
    const auto program = static_cast<int>(p);
    const auto &all = stage.programs[p].instructions;
    std::vector<ProgramRun> runs; // none: not looked up, or never run
    for (std::size_t first = 0, end = 0; first < all.size(); first = end) {
      for (end = first + 1; end < all.size() && end - first < kMostTogether &&
                            mayFollow(plan, stage, all[end - 1], all[end]);
           ++end) {
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
