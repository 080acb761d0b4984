//===- saved_plan.h - A plan as a file --------------------------*- C++ -*-===//
//
// The file holds the request, the machine, the software and the candidates
// (saved_candidate.h), and names the model. docs/plan-files.md lists the keys.
// A loaded plan is priced again. The saved step time is only compared with the
// new step time.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_DRIVER_SAVED_PLAN_H
#define MTPLAN_TOOLS_DRIVER_SAVED_PLAN_H

#include <string>

#include "tools/driver/flags.h"
#include "tools/driver/pipeline.h"

namespace mtplan::tools {

/// Returns the text of the file for an outcome, which must have a best plan.
/// The file includes the other plans and the rejections, so that loading it
/// gives the same report.
std::string savedPlanOf(const PlanOutcome &outcome);

/// Reads the file that --load names. savedPlanOf() wrote the file. Errors start
/// with the file's name and a JSON pointer.
/// \param flags  must have --load. MODEL and the replaceable flags, if given,
///   replace the saved values. With a replaceable flag, only the best plan is
///   priced.
PlanOutcome loadPlan(const Flags &flags);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_SAVED_PLAN_H
