//===- predicted_step.h - Predicted step of a plan, for mtrun ---*- C++ -*-===//

#ifndef MTPLAN_TOOLS_DRIVER_PREDICTED_STEP_H
#define MTPLAN_TOOLS_DRIVER_PREDICTED_STEP_H

#include "tools/driver/pipeline.h"
#include "tools/exchange/prediction.h"

namespace mtplan::tools {

/// Predicts the candidate's step: the time of each class of instructions, and
/// the simulated timeline.
Prediction predictionOf(const Problem &problem,
                        const planner::PlannedCandidate &candidate);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_PREDICTED_STEP_H
