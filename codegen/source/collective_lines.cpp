//===- collective_lines.cpp - Collectives as lines of a program -----------===//

#include "codegen/source/collective_lines.h"

#include <algorithm>
#include <string_view>

#include "runtime/plan/plan_queries.h"
#include "runtime/plan/plan_words.h"

namespace mtplan::codegen {

using namespace runtime;

namespace {

std::string dimensionText(int which) {
  return "dimension " + std::to_string(which);
}

} // namespace

CollectiveLines::CollectiveLines(const Plan &thePlan, const Program &theProgram,
                                 const StageNames &theNames,
                                 const SharedNames &theShared, Text &theText)
    : plan(thePlan), program(theProgram), names(theNames), shared(theShared),
      text(theText) {}

/// Returns the number of ranks in each communicator of a group: the constant of
/// a mesh axis if the group lies along this axis, else a number literal.
std::string CollectiveLines::ranksText(const Group &group) const {
  const std::size_t ranks = group.communicators.front().size();
  for (std::size_t a = 0; a < plan.mesh.size(); ++a)
    if (plan.mesh[a].name == group.name && indexed(plan.mesh[a].size) == ranks)
      return shared.dimensions.axis(static_cast<int>(a));
  return std::to_string(ranks);
}

void CollectiveLines::write(std::size_t i) const {
  const Instruction &instruction = program.instructions[i];
  const auto &what = std::get<Collective>(instruction.what);
  const Tensor &in = instruction.inputs[0], &out = instruction.outputs[0];
  const std::string ranks = ranksText(plan.groups[indexed(what.group)]),
                    stream = shared.streams[indexed(instruction.stream)];
  std::vector<std::string> arguments = {
      instruction.stream == 0 ? "now" : "now.on(" + stream + ")",
      shared.groups[indexed(what.group)], names.tensor(in), names.tensor(out)};
  const auto addAround = [&](const Tensor &tensor, int dimension,
                             const std::string &parts) {
    arguments.push_back(names.elements(tensor, 0, indexed(dimension)));
    arguments.push_back(names.elements(tensor, indexed(dimension)) + parts);
  };
  const std::string operation = what.reduction == Reduction::sum   ? "ncclSum"
                                : what.reduction == Reduction::max ? "ncclMax"
                                                                   : "ncclAvg";
  switch (what.kind) {
  case CollectiveKind::allReduce:
    arguments.push_back(names.elements(in));
    arguments.push_back(operation);
    return text.call("allReduce", arguments);
  case CollectiveKind::allGather:
    addAround(in, what.gathered, "");
    return text.call("allGather", arguments);
  case CollectiveKind::reduceScatter:
    addAround(out, what.scattered, "");
    arguments.push_back(operation);
    return text.call("reduceScatter", arguments);
  case CollectiveKind::allToAll:
    addAround(in, what.scattered, " / " + ranks);
    addAround(out, what.gathered, " / " + ranks);
    return text.call("allToAll", arguments);
  }
}

/// Returns the label and the kernel of the operator that computes a
/// collective's operand. Returns the buffer's name if an earlier program
/// computes the operand.
std::string CollectiveLines::originOf(const Instruction &instruction) const {
  const Instruction *last = nullptr;
  for (const Instruction &early : program.instructions) {
    if (&early == &instruction)
      break;
    for (const Tensor &tensor : early.outputs)
      if (tensor.buffer == instruction.inputs[0].buffer)
        last = &early;
  }
  if (!last)
    return names.buffer(indexed(instruction.inputs[0].buffer));
  const auto *call = std::get_if<KernelCall>(&last->what);
  return last->label + (call ? " (" + call->kernel + ")" : "");
}

std::string CollectiveLines::causeOf(std::size_t i) const {
  const Instruction &instruction = program.instructions[i];
  const auto &call = std::get<Collective>(instruction.what);
  const std::string origin = originOf(instruction);
  std::string term =
      std::string("each rank has a ") +
      (call.reduction == Reduction::max ? "maximum in "
                                        : "term of the sum in ") +
      origin;
  const std::string &group = plan.groups[indexed(call.group)].name;
  constexpr std::string_view kStages = "pp ";
  switch (call.kind) {
  case CollectiveKind::allReduce:
    if (group.starts_with(kStages))
      return "the weight is tied, and each of the stages " +
             group.substr(kStages.size()) + " has a gradient of it";
    break;
  case CollectiveKind::allGather:
    return "each rank has a shard of " + dimensionText(call.gathered) + " of " +
           origin;
  case CollectiveKind::reduceScatter:
    return term + " and needs a shard of " + dimensionText(call.scattered);
  case CollectiveKind::allToAll:
    return "each rank has a shard of " + dimensionText(call.gathered) + " of " +
           origin + " and needs one of " + dimensionText(call.scattered);
  }
  return term;
}

} // namespace mtplan::codegen
