//===- group_axis.h - Along which axis ranks are a group --------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_GROUP_AXIS_H
#define MTPLAN_CODEGEN_GROUP_AXIS_H

#include <string_view>

#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// The name of a group begins with its axis (PlanNames::groupOver).
inline std::string_view axisOf(const runtime::Group &group) {
  const std::string_view name = group.name;
  return name.substr(0, name.find(' '));
}

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_GROUP_AXIS_H
