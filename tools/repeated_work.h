//===- repeated_work.h - GPUs that all do the same --------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_REPEATED_WORK_H
#define MTPLAN_TOOLS_REPEATED_WORK_H

#include <string>

#include "tools/pipeline.h"

namespace mtplan::tools {

/// If most of the products of the best plan, which there must be, are repeated
/// on every rank of its tensor axis: a note that says so, why, and what would
/// share them. Else nothing. A product is repeated only where no dimension that
/// may be split divides, or where a pin says so; but mesh and micro-batch may
/// have been chosen for that.
std::string repeatedWorkOf(const PlanOutcome &outcome);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPEATED_WORK_H
