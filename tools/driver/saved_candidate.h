//===- saved_candidate.h - A candidate in a saved plan ----------*- C++ -*-===//
//
// A saved candidate has a configuration, the distinct runs of equal layers, and
// the virtual stages ("parts"), each a list of runs. A run states the strategy
// of each operator, the planner::ParameterState of each parameter, the tensors
// that are kept for backward, and every layout change.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_DRIVER_SAVED_CANDIDATE_H
#define MTPLAN_TOOLS_DRIVER_SAVED_CANDIDATE_H

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/json_fields.h"
#include "planner/search/solve_candidate.h"
#include "tools/driver/pipeline.h"
#include "tools/driver/saved_config.h"

namespace mtplan::tools {

nlohmann::ordered_json candidateJson(const Problem &problem,
                                     const planner::PlannedCandidate &plan);

/// Reads a member whose unit is seconds. The file stores infinity as null.
planner::Seconds savedSeconds(base::JsonFields &fields, const char *key);

/// Reads the runs and virtual stages of a candidate. Together, the stages must
/// hold every layer once, in the model's order. The result is valid only if
/// there are no notes.
/// \param graph  scaled to the samples of the candidate's micro-batches
/// \param layers  number of layers of each virtual stage
planner::PlannedParts readParts(base::JsonFields &plan,
                                const planner::ModelGraph &graph,
                                const planner::Setting &setting,
                                const std::vector<int> &layers,
                                std::vector<std::string> &notes);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_SAVED_CANDIDATE_H
