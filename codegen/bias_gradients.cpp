//===- bias_gradients.cpp - Sums beside products of gradients -------------===//

#include "codegen/bias_gradients.h"

#include <algorithm>
#include <array>
#include <optional>

#include "runtime/plan/first_term.h"

namespace mtplan::codegen {

using runtime::Instruction, runtime::KernelCall, runtime::Program,
    runtime::Setting;

namespace {

const KernelCall *callOf(const Instruction &instruction, const char *kernel) {
  const auto *call = std::get_if<KernelCall>(&instruction.what);
  return call && call->kernel == kernel ? call : nullptr;
}

std::optional<decltype(Setting::value)> valueOf(const KernelCall &call,
                                                const char *name) {
  for (const Setting &one : call.settings)
    if (one.name == name)
      return one.value;
  return std::nullopt;
}

bool areFollowedAlike(const KernelCall &one, const KernelCall &other) {
  return std::ranges::all_of(
      std::array{runtime::kThen, runtime::kFirstTerm, runtime::kFirstTermCopy},
      [&](const char *name) {
        return valueOf(one, name) == valueOf(other, name);
      });
}

bool isBeside(const Instruction &product, const Instruction &sum) {
  const KernelCall *both = callOf(product, "einsum"), *one = callOf(sum, "sum");
  return both && one && product.inputs.size() == 2 &&
         isSame(product.inputs[1], sum.inputs[0]) &&
         areFollowedAlike(*both, *one);
}

} // namespace

void joinBiasGradients(Program &program, const Meetings &meetings) {
  auto &all = program.instructions;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto after = all.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    const auto sum =
        std::find_if(after, all.end(), [&](const Instruction &one) {
          return isBeside(all[i], one);
        });
    // Nothing it writes may lie where the product reads or writes, either.
    if (sum == all.end() ||
        std::any_of(all.begin() + static_cast<std::ptrdiff_t>(i), sum,
                    [&](const Instruction &between) {
                      return meetings.meet(between, *sum);
                    }))
      continue;
    Instruction &product = all[i];
    std::get<KernelCall>(product.what)
        .settings.push_back({runtime::kBiasGradient, std::int64_t{1}});
    product.outputs.insert(product.outputs.end(), sum->outputs.begin(),
                           sum->outputs.end());
    all.erase(sum);
  }
}

} // namespace mtplan::codegen
