//===- shortfall.h - When nothing fits --------------------------*- C++ -*-===//
//
// Says what came nearest and, by trying, what would fit.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_SHORTFALL_H
#define MTPLAN_TOOLS_SHORTFALL_H

#include <string>
#include <vector>

#include "tools/pipeline.h"
#include "tools/screen.h"

namespace mtplan::tools {

/// Changes of the request under which a plan was found, one line each; every
/// one has been searched for. Bounded: at most 40 searches, and one for each
/// split and operator where nothing is legal.
std::vector<std::string> remediesOf(const PlanRequest &request,
                                    const PlanOutcome &outcome);

/// What a person sees when an outcome has no plan.
std::string shortfallOf(const PlanOutcome &outcome,
                        const std::vector<std::string> &remedies,
                        const ScreenStyle &style);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_SHORTFALL_H
