//===- waits.cpp - Which instructions wait for which ----------------------===//

#include "codegen/waits.h"

#include <algorithm>
#include <vector>

#include "runtime/plan/plan_queries.h"
#include "runtime/plan/program_runs.h"

namespace mtplan::codegen {

using runtime::Buffer, runtime::indexed, runtime::Instruction, runtime::Plan,
    runtime::Program, runtime::ScheduleEntry, runtime::Stage, runtime::Tensor;

namespace {

class MemoryOverlaps {
public:
  /// The stage, with its schedule, must outlive the object.
  MemoryOverlaps(const Stage &theStage, int program);

  /// Returns whether, in some run, one of the instructions writes bytes that
  /// the other instruction reads or writes.
  bool overlap(const Instruction &a, const Instruction &b) const;
  /// Returns whether two tensors share bytes in some run. Takes O(runs) time.
  bool overlap(const Tensor &a, const Tensor &b) const;

private:
  bool overlap(const std::vector<Tensor> &some,
               const std::vector<Tensor> &others) const;

  const Stage &stage;
  std::vector<const ScheduleEntry *> runs;
};

bool isOnePiece(const Buffer &buffer) {
  return buffer.entries == 1 && buffer.slots == 1;
}

MemoryOverlaps::MemoryOverlaps(const Stage &theStage, int program)
    : stage(theStage) {
  for (const auto *entries : {&stage.schedule, &stage.reduce, &stage.apply})
    for (const ScheduleEntry &entry : *entries)
      if (entry.program == program)
        runs.push_back(&entry);
}

bool MemoryOverlaps::overlap(const Instruction &a, const Instruction &b) const {
  return overlap(a.outputs, b.outputs) || overlap(a.outputs, b.inputs) ||
         overlap(a.inputs, b.outputs);
}

bool MemoryOverlaps::overlap(const std::vector<Tensor> &some,
                             const std::vector<Tensor> &others) const {
  return std::ranges::any_of(some, [&](const Tensor &a) {
    return std::ranges::any_of(others,
                               [&](const Tensor &b) { return overlap(a, b); });
  });
}

bool MemoryOverlaps::overlap(const Tensor &a, const Tensor &b) const {
  const Buffer &first = stage.buffers[indexed(a.buffer)],
               &second = stage.buffers[indexed(b.buffer)];
  if (first.arena != second.arena || first.offset >= endOf(second) ||
      second.offset >= endOf(first))
    return false;
  if (isOnePiece(first) && isOnePiece(second))
    return true;
  for (const ScheduleEntry *run : runs)
    for (int i = 0; i < run->count; ++i) {
      const runtime::ProgramRun here{run->first + i * run->step,
                                     run->microBatch};
      const std::int64_t one = runtime::arenaBytesOf(stage, a, here).begin,
                         other = runtime::arenaBytesOf(stage, b, here).begin;
      if (one < other + second.size && other < one + first.size)
        return true;
    }
  return false;
}

/// Holds, for each stream, the index of the last instruction that has ended
/// when a given instruction begins, or -1 if no instruction has ended.
using Ended = std::vector<int>;

/// Returns instruction `i` and, if it begins a launch, the other instructions
/// of the launch. The other instructions are returned without outputs that only
/// a fused consumer reads, because a batched product does not write such
/// outputs.
std::vector<Instruction> startingWith(const Program &program, std::size_t i) {
  std::vector<Instruction> launch{program.instructions[i]};
  for (const runtime::Batch &batch : program.batches) {
    if (indexed(batch.instructions.front()) != i)
      continue;
    for (const int one : batch.instructions) {
      if (indexed(one) == i)
        continue;
      Instruction other = program.instructions[indexed(one)];
      if (std::holds_alternative<runtime::KernelCall>(other.what))
        for (std::size_t o = other.outputs.size(); o-- > 0;)
          if (!runtime::isWritten(other, o))
            other.outputs.erase(other.outputs.begin() +
                                static_cast<std::ptrdiff_t>(o));
      launch.push_back(std::move(other));
    }
  }
  return launch;
}

void writeWaits(Program &program, std::size_t streams,
                const MemoryOverlaps &overlaps) {
  std::vector<Ended> before; // indexed by the instruction that begins
  std::vector<std::vector<int>> queues(streams);
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    Instruction &late = program.instructions[i];
    const std::vector<Instruction> launch = startingWith(program, i);
    const auto follows = [&](const Instruction &early) {
      return std::ranges::any_of(launch, [&](const Instruction &one) {
        return overlaps.overlap(early, one);
      });
    };
    Ended ended(streams, -1);
    std::vector<int> &own = queues[indexed(late.stream)];
    if (!own.empty()) {
      ended = before[indexed(own.back())];
      ended[indexed(late.stream)] = own.back();
    }
    // The last conflicting instruction of each other stream is enough, because
    // a stream runs its instructions in order.
    std::vector<int> needed;
    for (std::size_t stream = 0; stream < streams; ++stream) {
      const std::vector<int> &queue = queues[stream];
      for (auto early = queue.rbegin();
           early != queue.rend() && *early > ended[stream]; ++early)
        if (follows(program.instructions[indexed(*early)])) {
          needed.push_back(*early);
          break;
        }
    }
    late.waits.clear();
    for (int early : needed) {
      const int stream = program.instructions[indexed(early)].stream;
      if (std::ranges::none_of(needed, [&](int other) {
            return before[indexed(other)][indexed(stream)] >= early;
          }))
        late.waits.push_back(early);
    }
    std::ranges::sort(late.waits);
    for (int early : late.waits) {
      for (std::size_t stream = 0; stream < streams; ++stream)
        ended[stream] = std::max(ended[stream], before[indexed(early)][stream]);
      int &last = ended[indexed(program.instructions[indexed(early)].stream)];
      last = std::max(last, early);
    }
    before.push_back(ended);
    own.push_back(static_cast<int>(i));
  }
}

} // namespace

void writeWaits(Plan &plan) {
  for (Stage &stage : plan.stages)
    for (std::size_t p = 0; p < stage.programs.size(); ++p)
      writeWaits(stage.programs[p], plan.streams.size(),
                 MemoryOverlaps(stage, static_cast<int>(p)));
}

} // namespace mtplan::codegen
