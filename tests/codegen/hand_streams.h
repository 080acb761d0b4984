//===- hand_streams.h - Streams and waits of hand-made plans ----*- C++ -*-===//

#ifndef MTPLAN_TESTS_CODEGEN_HAND_STREAMS_H
#define MTPLAN_TESTS_CODEGEN_HAND_STREAMS_H

#include <algorithm>
#include <set>
#include <string>

#include "codegen/waits.h"
#include "ir/decisions.h"
#include "ir/mtp.h"
#include "runtime/plan/plan_queries.h"

namespace mtplan {

/// Returns the name of the stream (ir::kStreams) that the compiler would assign
/// to `instruction`.
inline std::string_view handStreamOf(const runtime::Plan &plan,
                                     const runtime::Stage &stage,
                                     const runtime::Instruction &instruction) {
  switch (runtime::sideOf(stage, instruction)) {
  case runtime::Side::down:
    return "down";
  case runtime::Side::host:
    return "host";
  case runtime::Side::up:
    return "up";
  default:
    break;
  }
  if (std::holds_alternative<runtime::Transfer>(instruction.what))
    return "pipeline";
  const auto *call = std::get_if<runtime::Collective>(&instruction.what);
  if (!call)
    return "compute";
  const std::string &group =
      plan.groups[static_cast<std::size_t>(call->group)].name;
  const std::string axis = group.substr(0, group.find(' '));
  return axis == "pp"              ? "pipeline"
         : ir::isReplicaAxis(axis) ? "data"
                                   : "tensor";
}

/// Moves the instructions of the Stage::reduce program `from` to the end of the
/// scheduled program `to` and marks them as overlapped.
inline void overlapByHand(runtime::Stage &stage, const std::string &from,
                          const std::string &to) {
  const auto find = [&](const std::string &name) {
    return std::ranges::find(stage.programs, name, &runtime::Program::name);
  };
  for (runtime::Instruction &one : find(from)->instructions) {
    one.overlapped = true;
    find(to)->instructions.push_back(std::move(one));
  }
  const auto gone = static_cast<int>(find(from) - stage.programs.begin());
  stage.programs.erase(find(from));
  std::erase_if(stage.reduce, [&](const runtime::ScheduleEntry &entry) {
    return entry.program == gone;
  });
  for (auto *entries : {&stage.schedule, &stage.reduce, &stage.apply})
    for (runtime::ScheduleEntry &entry : *entries)
      entry.program -= entry.program > gone ? 1 : 0;
}

/// Assigns streams to a hand-made plan and computes its waits.
inline void writeStreamsAndWaits(runtime::Plan &plan) {
  std::set<std::string_view> used{"compute"};
  const auto forEach = [&](auto act) {
    for (runtime::Stage &stage : plan.stages)
      for (runtime::Program &program : stage.programs)
        for (runtime::Instruction &instruction : program.instructions)
          act(instruction, handStreamOf(plan, stage, instruction));
  };
  forEach([&](runtime::Instruction &, std::string_view stream) {
    used.insert(stream);
  });
  plan.streams.clear();
  for (const std::string_view stream : ir::kStreams)
    if (used.contains(stream))
      plan.streams.emplace_back(stream);
  forEach([&](runtime::Instruction &instruction, std::string_view stream) {
    for (std::size_t i = 0; i < plan.streams.size(); ++i)
      if (plan.streams[i] == stream)
        instruction.stream = static_cast<int>(i);
  });
  codegen::writeWaits(plan);
}

} // namespace mtplan

#endif // MTPLAN_TESTS_CODEGEN_HAND_STREAMS_H
