//===- program_runs.cpp - The runs of a program in a step -----------------===//

#include "runtime/plan/program_runs.h"

#include <numeric>
#include <set>

#include "runtime/plan/index.h"

namespace mtplan::runtime {

namespace {

constexpr int kMostSlots = 1 << 20;

/// In how many micro-batches all places come again, at most kMostSlots.
int slotsOf(const Stage &stage, const Program &program) {
  int slots = 1;
  for (const Instruction &instruction : program.instructions)
    for (const auto *some : {&instruction.inputs, &instruction.outputs})
      for (const Tensor &tensor : *some) {
        const int own = stage.buffers[indexed(tensor.buffer)].slots;
        slots = slots / std::gcd(slots, own) > kMostSlots / own
                    ? kMostSlots
                    : std::lcm(slots, own);
      }
  return slots;
}

} // namespace

std::vector<ProgramRun> runsOf(const Stage &stage, int program) {
  const int slots = slotsOf(stage, stage.programs[indexed(program)]);
  std::set<ProgramRun> found;
  for (const auto *entries : {&stage.schedule, &stage.reduce, &stage.apply})
    for (const ScheduleEntry &entry : *entries)
      for (int i = 0; entry.program == program && i < entry.count; ++i)
        found.insert({entry.first + i * entry.step,
                      slots == kMostSlots ? entry.microBatch
                                          : entry.microBatch % slots});
  return {found.begin(), found.end()};
}

} // namespace mtplan::runtime
