//===- remedies.h - Requests that would fit ---------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_DRIVER_REMEDIES_H
#define MTPLAN_TOOLS_DRIVER_REMEDIES_H

#include "tools/driver/pipeline.h"

namespace mtplan::tools {

/// Changes of the request under which a search found a plan, one line each.
/// At most 40 searches are run, and one for each split and operator where no
/// plan is legal.
std::vector<std::string> remediesOf(const PlanRequest &request,
                                    const PlanOutcome &outcome);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_REMEDIES_H
