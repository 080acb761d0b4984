//===- setting_names.cpp - Names for the settings of kernels --------------===//

#include "codegen/source/setting_names.h"

#include <algorithm>
#include <cmath>

#include "codegen/source/text.h"

namespace mtplan::codegen {

using namespace runtime;

namespace {

const Setting *find(const KernelCall &call, const std::string &name) {
  const auto found = std::ranges::find(call.settings, name, &Setting::name);
  return found == call.settings.end() ? nullptr : &*found;
}

/// Returns the meaning of an attention's scale, for a comment.
std::string meaningOfScale(const KernelCall &call, double scale) {
  const Setting *width = find(call, "head_dim");
  const auto *channels =
      width ? std::get_if<std::int64_t>(&width->value) : nullptr;
  const bool isUsual =
      channels &&
      std::abs(scale * std::sqrt(static_cast<double>(*channels)) - 1) < 1e-12;
  return isUsual ? "of attention scores: 1 / sqrt(D)" : "of attention scores";
}

} // namespace

SettingNames::SettingNames(const Plan &plan) {
  for (const Stage &stage : plan.stages)
    for (const Program &program : stage.programs)
      for (const Instruction &instruction : program.instructions)
        if (const auto *call = std::get_if<KernelCall>(&instruction.what))
          see(*call);
}

void SettingNames::see(const KernelCall &call) {
  const auto add = [&](const char *setting, const std::string &name,
                       const char *meaning) {
    const Setting *found = find(call, setting);
    const auto *value = found ? std::get_if<double>(&found->value) : nullptr;
    // A kernel with the rate 0 has no dropout.
    if (!value || *value == 0.0 ||
        std::ranges::any_of(settings, [&](const NamedSetting &one) {
          return one.setting == setting && one.value == *value;
        }))
      return;
    const auto others =
        std::ranges::count(settings, setting, &NamedSetting::setting);
    settings.push_back({setting,
                        name + (others == 0 ? "" : std::to_string(others + 1)),
                        *value,
                        *meaning != '\0' ? std::string(meaning)
                                         : meaningOfScale(call, *value)});
  };
  if (call.kernel == "attention")
    add("scale", "attentionScale", "");
  if (call.kernel.ends_with("_norm"))
    add("epsilon", "normEpsilon", "added to variances");
  add("rate", "dropoutRate", "share of elements that dropout zeroes");
}

std::string SettingNames::of(const std::string &setting, double value) const {
  for (const NamedSetting &one : settings)
    if (one.setting == setting && one.value == value)
      return one.name;
  return numberText(value);
}

} // namespace mtplan::codegen
