//===- streams.cpp - Which stream does what, and who waits ----------------===//

#include "codegen/streams.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "codegen/group_axis.h"
#include "codegen/meetings.h"
#include "ir/mtp.h"
#include "ir/replica_axes.h"
#include "runtime/plan/instruction_side.h"

namespace mtplan::codegen {

using runtime::Instruction, runtime::Plan, runtime::Program, runtime::Stage;

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
  const std::string_view axis = axisOf(plan.groups[indexed(call->group)]);
  if (axis == std::string_view(ir::kStageAxis))
    return pipeline;
  return ir::isReplicaAxis(axis) ? data : tensor;
}

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
