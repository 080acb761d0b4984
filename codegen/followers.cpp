//===- followers.cpp - Kernels with who takes their result ----------------===//

#include "codegen/followers.h"

#include <algorithm>

#include "ir/follower.h"
#include "runtime/plan/then_setting.h"

using namespace mlir;

namespace mtplan::codegen {

using runtime::Instruction, runtime::KernelCall, runtime::Program,
    runtime::Tensor;

namespace {

/// The one with the other after it; what that takes beside the one's result
/// comes after the one's own operands.
Instruction joined(const Instruction &one, const Instruction &other) {
  Instruction both = one;
  auto &call = std::get<KernelCall>(both.what);
  const auto &then = std::get<KernelCall>(other.what);
  call.settings.push_back({runtime::kThen, then.kernel});
  call.settings.insert(call.settings.end(), then.settings.begin(),
                       then.settings.end());
  for (const Tensor &operand : other.inputs)
    if (!isSame(operand, one.outputs[0]))
      both.inputs.push_back(operand);
  both.outputs.push_back(other.outputs[0]);
  return both;
}

} // namespace

void joinFollowers(Program &program, std::vector<Operation *> &operators,
                   const Meetings &meetings) {
  auto &all = program.instructions;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Operation *follower = ir::followerOf(operators[i]);
    const auto found =
        std::find(operators.begin() + static_cast<std::ptrdiff_t>(i),
                  operators.end(), follower);
    if (!follower || found == operators.end())
      continue;
    const auto at = static_cast<std::size_t>(found - operators.begin());
    const Instruction maker = all[i], other = all[at];
    const auto crosses = [&](const Instruction &moved) {
      return std::any_of(all.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                         all.begin() + static_cast<std::ptrdiff_t>(at),
                         [&](const Instruction &between) {
                           return meetings.meet(between, moved);
                         });
    };
    // What the maker reads may have been there for the last time, and what
    // else it makes, come and gone.
    const auto meets = [&](const Tensor &one) {
      return meetings.meet(one, other.outputs[0]);
    };
    const bool overwrites =
        std::ranges::any_of(maker.inputs, meets) ||
        std::any_of(maker.outputs.begin() + 1, maker.outputs.end(), meets);
    const bool movesUp = !crosses(other);
    if (overwrites || (!movesUp && crosses(maker)))
      continue;
    const std::size_t stays = movesUp ? i : at, goes = movesUp ? at : i;
    all[stays] = joined(maker, other);
    operators[stays] = operators[i];
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(goes));
    operators.erase(operators.begin() + static_cast<std::ptrdiff_t>(goes));
    if (!movesUp)
      --i; // what came after the maker is here now
  }
}

} // namespace mtplan::codegen
