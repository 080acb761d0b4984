//===- predicted_step.h - A plan's step, for mtrun to compare ---*- C++ -*-===//

#ifndef MTPLAN_TOOLS_PREDICTED_STEP_H
#define MTPLAN_TOOLS_PREDICTED_STEP_H

#include "tools/pipeline.h"
#include "tools/run/prediction.h"

namespace mtplan::tools {

/// The candidate's step by class of instructions, and as simulated.
Prediction predictionOf(const Problem &problem,
                        const planner::PlannedCandidate &candidate);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_PREDICTED_STEP_H
