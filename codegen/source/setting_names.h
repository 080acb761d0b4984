//===- setting_names.h - Names for the settings of kernels ------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_SETTING_NAMES_H
#define MTPLAN_CODEGEN_SOURCE_SETTING_NAMES_H

#include <string>
#include <vector>

#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// Describes the program's constant for the value of a kernel setting.
struct NamedSetting {
  std::string setting; ///< "rate"
  std::string name;    ///< "dropoutRate"
  double value = 0.0;
  std::string meaning;
};

/// Names the dropout rates, the epsilons of norms and the scales of attention
/// in a plan.
class SettingNames {
public:
  explicit SettingNames(const runtime::Plan &plan);

  const std::vector<NamedSetting> &all() const { return settings; }
  /// Returns the constant for this value of a setting, or the value as a
  /// literal.
  std::string of(const std::string &setting, double value) const;

private:
  void see(const runtime::KernelCall &call);

  std::vector<NamedSetting> settings;
};

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_SETTING_NAMES_H
