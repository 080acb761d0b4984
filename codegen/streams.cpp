//===- streams.cpp - Which stream does what, and who waits ----------------===//

#include "codegen/streams.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "ir/mtp.h"
#include "runtime/plan/instruction_side.h"

namespace mtplan::codegen {

using runtime::Buffer, runtime::Instruction, runtime::Plan, runtime::Program,
    runtime::ScheduleEntry, runtime::Stage, runtime::Tensor;

namespace {

enum Stream : std::uint8_t {
  compute,
  tensor,
  data,
  pipeline,
  down, // what is offloaded: gradients to the host,
  host, // its work,
  up,   // and weights back
  kStreams
};
constexpr std::array<std::string_view, kStreams> kNames = {
    "compute", "tensor", "data", "pipeline", "down", "host", "up"};

std::size_t indexed(int index) { return static_cast<std::size_t>(index); }

Stream streamOf(const Instruction &instruction, const Stage &stage,
                const Plan &plan) {
  switch (runtime::sideOf(stage, instruction)) {
  case runtime::Side::down:
    return down;
  case runtime::Side::host:
    return host;
  case runtime::Side::up:
    return up;
  default:
    break;
  }
  if (std::holds_alternative<runtime::Transfer>(instruction.what))
    return pipeline;
  const auto *call = std::get_if<runtime::Collective>(&instruction.what);
  if (!call)
    return compute;
  const std::string &group = plan.groups[indexed(call->group)].name;
  const std::string_view axis(group.data(),
                              std::min(group.find(' '), group.size()));
  if (axis == std::string_view(ir::kStageAxis))
    return pipeline;
  return axis == "dp" || axis == "zero" ? data : tensor;
}

/// Finds who touches what another touches, in a program of a stage.
class Meetings {
public:
  Meetings(const Stage &theStage, int program) : stage(theStage) {
    for (const auto *entries : {&stage.schedule, &stage.reduce, &stage.apply})
      for (const ScheduleEntry &entry : *entries)
        if (entry.program == program)
          runs.push_back(&entry);
  }

  /// Whether one writes what the other reads or writes, in some run.
  bool meet(const Instruction &a, const Instruction &b) const {
    return meet(a.outputs, b.outputs) || meet(a.outputs, b.inputs) ||
           meet(a.inputs, b.outputs);
  }

private:
  bool meet(const std::vector<Tensor> &some,
            const std::vector<Tensor> &others) const {
    return std::ranges::any_of(some, [&](const Tensor &a) {
      return std::ranges::any_of(others,
                                 [&](const Tensor &b) { return meet(a, b); });
    });
  }

  bool meet(const Tensor &a, const Tensor &b) const {
    const Buffer &first = stage.buffers[indexed(a.buffer)],
                 &second = stage.buffers[indexed(b.buffer)];
    if (first.arena != second.arena || first.offset >= endOf(second) ||
        second.offset >= endOf(first))
      return false;
    if (isOnePiece(first) && isOnePiece(second))
      return true;
    for (const ScheduleEntry *run : runs)
      for (int i = 0; i < run->count; ++i) {
        const int copy = run->first + i * run->step;
        const std::int64_t one = startOf(a, copy, run->microBatch),
                           other = startOf(b, copy, run->microBatch);
        if (one < other + second.size && other < one + first.size)
          return true;
      }
    return false;
  }

  static bool isOnePiece(const Buffer &buffer) {
    return buffer.entries == 1 && buffer.slots == 1;
  }
  static std::int64_t endOf(const Buffer &buffer) {
    return buffer.offset + (buffer.entries - 1) * buffer.entryStride +
           (buffer.slots - 1) * buffer.slotStride + buffer.size;
  }
  std::int64_t startOf(const Tensor &tensor, int copy, int microBatch) const {
    const Buffer &buffer = stage.buffers[indexed(tensor.buffer)];
    const std::int64_t entry =
        tensor.entry + std::int64_t{copy} * tensor.entryStep;
    return buffer.offset + entry % buffer.entries * buffer.entryStride +
           microBatch % buffer.slots * buffer.slotStride;
  }

  const Stage &stage;
  std::vector<const ScheduleEntry *> runs;
};

/// By stream, the last instruction of it that has ended, or -1.
using Ended = std::array<int, kStreams>;

void writeWaits(Program &program, const Meetings &meetings) {
  std::vector<Ended> before; // by instruction, what it follows
  std::array<std::vector<int>, kStreams> queues;
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    Instruction &late = program.instructions[i];
    Ended ended;
    ended.fill(-1);
    std::vector<int> &own = queues[indexed(late.stream)];
    if (!own.empty()) {
      ended = before[indexed(own.back())];
      ended[indexed(late.stream)] = own.back();
    }
    // The last of each other stream: those before it are followed with it.
    std::vector<int> needed;
    for (std::size_t stream = 0; stream < kStreams; ++stream) {
      const std::vector<int> &queue = queues[stream];
      for (auto early = queue.rbegin();
           early != queue.rend() && *early > ended[stream]; ++early)
        if (meetings.meet(program.instructions[indexed(*early)], late)) {
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
      for (std::size_t stream = 0; stream < kStreams; ++stream)
        ended[stream] = std::max(ended[stream], before[indexed(early)][stream]);
      int &last = ended[indexed(program.instructions[indexed(early)].stream)];
      last = std::max(last, early);
    }
    before.push_back(ended);
    own.push_back(static_cast<int>(i));
  }
}

} // namespace

void assignStreams(Plan &plan) {
  std::array<bool, kStreams> used{true}; // "compute" always
  for (Stage &stage : plan.stages)
    for (std::size_t p = 0; p < stage.programs.size(); ++p) {
      Program &program = stage.programs[p];
      for (Instruction &instruction : program.instructions) {
        instruction.stream = streamOf(instruction, stage, plan);
        used[indexed(instruction.stream)] = true;
      }
      writeWaits(program, Meetings(stage, static_cast<int>(p)));
    }
  std::array<int, kStreams> numbers{};
  plan.streams.clear();
  for (std::size_t stream = 0; stream < kStreams; ++stream) {
    numbers[stream] = static_cast<int>(plan.streams.size());
    if (used[stream])
      plan.streams.emplace_back(kNames[stream]);
  }
  for (Stage &stage : plan.stages)
    for (Program &program : stage.programs)
      for (Instruction &instruction : program.instructions)
        instruction.stream = numbers[indexed(instruction.stream)];
}

} // namespace mtplan::codegen
