//===- setting_names.cpp - Names for the settings of kernels --------------===//

#include "codegen/source/setting_names.h"

#include <algorithm>
#include <cmath>

#include "codegen/source/text.h"
#include "runtime/plan/plan_queries.h"

namespace mtplan::codegen {

using namespace runtime;

namespace {

std::string meaningOfScale(const KernelCall &call, double scale) {
  const auto *channels = settingValue<std::int64_t>(call.settings, "head_dim");
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
    const auto *value = settingValue<double>(call.settings, setting);
    // A dropout rate of 0 means no dropout, and needs no constant.
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
