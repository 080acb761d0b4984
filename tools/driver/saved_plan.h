//===- saved_plan.h - A plan as a file --------------------------*- C++ -*-===//
//
// The file has everything that determines a plan except the model, which it
// names: the request, the machine, the software, and the candidates
// (saved_candidate.h). docs/plan-files.md lists the keys. A loaded plan is
// priced again; the saved step time is only compared with the new one.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_DRIVER_SAVED_PLAN_H
#define MTPLAN_TOOLS_DRIVER_SAVED_PLAN_H

#include <string>

#include "tools/driver/flags.h"
#include "tools/driver/pipeline.h"

namespace mtplan::tools {

/// Writes an outcome that has a best plan. The other plans and the rejections
/// are included, so that loading the file gives the same report.
std::string savedPlanOf(const PlanOutcome &outcome);

/// Reads an outcome that savedPlanOf() wrote. Errors in the file and
/// contradictions to the model start with the file's name and a JSON pointer.
/// \param flags  has --load. MODEL and the replaceable flags, if given, replace
///   the saved ones. With a replaceable flag, only the best plan is priced.
PlanOutcome loadPlan(const Flags &flags);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_SAVED_PLAN_H
