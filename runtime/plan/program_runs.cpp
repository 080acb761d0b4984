//===- program_runs.cpp - The runs of a program, and their bytes ----------===//

#include "runtime/plan/program_runs.h"

#include <numeric>
#include <set>

#include "runtime/plan/kernel_settings.h"
#include "runtime/plan/plan_queries.h"

namespace mtplan::runtime {

namespace {

constexpr int kMostSlots = 1 << 20;

/// Returns the number of micro-batches after which all tensors of a program
/// have the same offsets again; at most kMostSlots.
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

ArenaBytes arenaBytesOf(const Stage &stage, const Tensor &tensor,
                        const ProgramRun &run) {
  const Buffer &buffer = stage.buffers[indexed(tensor.buffer)];
  const std::int64_t entry =
      (tensor.entry + std::int64_t{run.copy} * tensor.entryStep) %
      buffer.entries;
  const std::int64_t begin = buffer.offset + entry * buffer.entryStride +
                             run.microBatch % buffer.slots * buffer.slotStride;
  std::int64_t bytes = bytesOf(tensor.type);
  for (const std::int64_t size : tensor.shape)
    bytes *= size;
  return {buffer.arena, begin, begin + bytes};
}

bool isWritten(const Instruction &kernel, std::size_t output) {
  const auto &settings = std::get<KernelCall>(kernel.what).settings;
  return output % 2 == 1 || !findSetting(settings, kThen);
}

BatchSteps stepsOf(const Stage &stage, int program, const Batch &batch) {
  const auto &all = stage.programs[indexed(program)].instructions;
  const Instruction &first = all[indexed(batch.instructions[0])],
                    &second = all[indexed(batch.instructions[1])];
  const ProgramRun run = runsOf(stage, program).front();
  const auto step = [&](const Tensor &from, const Tensor &to) {
    return arenaBytesOf(stage, to, run).begin -
           arenaBytesOf(stage, from, run).begin;
  };
  BatchSteps steps;
  for (std::size_t i = 0; i < first.inputs.size(); ++i)
    steps.inputs.push_back(step(first.inputs[i], second.inputs[i]));
  for (std::size_t o = 0; o < first.outputs.size(); ++o)
    steps.outputs.push_back(
        isWritten(first, o) ? step(first.outputs[o], second.outputs[o]) : 0);
  return steps;
}

} // namespace mtplan::runtime
