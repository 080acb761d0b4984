//===- repeated_work.h - Work that tensor ranks repeat ----------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_DRIVER_REPEATED_WORK_H
#define MTPLAN_TOOLS_DRIVER_REPEATED_WORK_H

#include <string>

#include "tools/driver/pipeline.h"

namespace mtplan::tools {

/// Returns a note if the tensor-parallel ranks repeat most matrix products of
/// the best plan, else an empty text. The note states the reason. Unless the
/// request has pins, the note also lists remedies. Ranks repeat a product only
/// if tp divides none of the dimensions that may be split, or if a pin requires
/// the repetition. The outcome must have a plan.
std::string repeatedWorkOf(const PlanOutcome &outcome);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_REPEATED_WORK_H
