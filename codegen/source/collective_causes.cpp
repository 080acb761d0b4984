//===- collective_causes.cpp - Why ranks talk, and how often --------------===//

#include "codegen/source/collective_causes.h"

namespace mtplan::codegen {

using namespace runtime;

namespace {

// Returns the operator that made a collective's operand.
std::string originOf(const Program &program, const Instruction &instruction) {
  const Instruction *last = nullptr;
  for (const Instruction &early : program.instructions) {
    if (&early == &instruction)
      break;
    for (const Tensor &tensor : early.outputs)
      if (tensor.buffer == instruction.inputs[0].buffer)
        last = &early;
  }
  if (!last)
    return "what earlier programs left";
  const auto *call = std::get_if<KernelCall>(&last->what);
  return last->label + (call ? " (" + call->kernel + ")" : "");
}

} // namespace

std::string causeOf(const Collective &call, const Program &program,
                    const Instruction &instruction) {
  const std::string origin = originOf(program, instruction);
  auto dimension = [](int which) {
    return "dimension " + std::to_string(which);
  };
  std::string term =
      std::string("each rank has a ") +
      (call.reduction == Reduction::max ? "maximum in "
                                        : "term of the sum in ") +
      origin;
  switch (call.kind) {
  case CollectiveKind::allReduce:
    break;
  case CollectiveKind::allGather:
    return "each rank has a piece of " + dimension(call.gathered) + " of " +
           origin;
  case CollectiveKind::reduceScatter:
    return term + " and needs a piece of " + dimension(call.scattered);
  case CollectiveKind::allToAll:
    return "each rank has a piece of " + dimension(call.scattered) +
           " in whole of " + origin + " and needs one of " +
           dimension(call.gathered);
  }
  return term;
}

std::size_t endOfGroup(const std::vector<JointCollectives> &joints, int program,
                       std::size_t i) {
  for (const JointCollectives &joint : joints)
    if (joint.program == program && joint.first == i)
      return joint.end;
  return i + 1;
}

} // namespace mtplan::codegen
