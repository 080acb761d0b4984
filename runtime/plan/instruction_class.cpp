//===- instruction_class.cpp - Classes of instructions in reports ---------===//

#include "runtime/plan/instruction_class.h"

#include <algorithm>
#include <array>

namespace mtplan::runtime {

std::string_view classOfKernel(std::string_view kernel) {
  constexpr std::array<std::string_view, 7> kMoves = {
      "accumulate", "piece", "slice", "mask", "cast", "copy", "zeros"};
  if (kernel == "einsum")
    return kProducts;
  if (kernel == "attention" || kernel == "attention_grad")
    return kAttention;
  if (kernel == "adamw")
    return kOptimizer;
  return std::ranges::find(kMoves, kernel) != kMoves.end() ? kCopies
                                                           : kPointwise;
}

std::string classOfGroup(std::string_view group) {
  return "collectives " + std::string(group.substr(0, group.find(' ')));
}

std::string classOf(const Plan &plan, const Instruction &instruction) {
  if (const auto *call = std::get_if<KernelCall>(&instruction.what))
    return std::string(classOfKernel(call->kernel));
  if (const auto *call = std::get_if<Collective>(&instruction.what))
    return classOfGroup(
        plan.groups[static_cast<std::size_t>(call->group)].name);
  return std::holds_alternative<Transfer>(instruction.what) ? kMessages : kRest;
}

std::vector<std::string> classesOf(const Plan &plan) {
  std::vector<std::string> all{kProducts, kAttention,    kPointwise,
                               kCopies,   kGradientNorm, kOptimizer};
  for (const Group &group : plan.groups)
    if (std::string name = classOfGroup(group.name);
        std::ranges::find(all, name) == all.end())
      all.push_back(std::move(name));
  all.emplace_back(kMessages);
  all.emplace_back(kRest);
  return all;
}

} // namespace mtplan::runtime
