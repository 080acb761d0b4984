//===- saved_plan.h - A plan as a file --------------------------*- C++ -*-===//
//
// The file has everything that determines a plan: the request, the machine and
// the software, the configuration, and for each run of equal layers the
// strategy of each operator, the state of each parameter, the tensors kept for
// backward and every layout change. docs/plan-files.md lists the keys. Prices
// are not read: a loaded plan is priced again.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_DRIVER_SAVED_PLAN_H
#define MTPLAN_TOOLS_DRIVER_SAVED_PLAN_H

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/json_text.h"
#include "tools/driver/flags.h"
#include "tools/driver/pipeline.h"

namespace mtplan::tools {

inline constexpr std::int64_t kPlanFileVersion = 1;

/// Writes an outcome that has a best plan. The other plans and the rejections
/// are included, so that loading the file gives the same report.
std::string savedPlanOf(const PlanOutcome &outcome);

/// Reads the outcome that was saved. Errors of the file, and contradictions to
/// the model, have their JSON pointer.
/// \param flags  --load; MODEL and the replaceable flags, if given, replace the
///   saved ones. On another machine only the best plan is priced.
PlanOutcome loadPlan(const Flags &flags);

/// Returns a hash of the model; equal models have equal hashes.
std::string fingerprintOf(const Problem &problem);

/// Writes one run of equal layers, without their numbers.
nlohmann::ordered_json runJson(const planner::ModelGraph &graph,
                               const planner::SegmentPlan &run,
                               const planner::Mesh &mesh);

/// Reads a run; `first` and `count` are not set.
/// \param graph  for the candidate's samples
std::optional<planner::SegmentPlan> readRun(const base::Json &value,
                                            const std::string &pointer,
                                            const planner::ModelGraph &graph,
                                            const planner::Setting &setting,
                                            std::vector<std::string> &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_SAVED_PLAN_H
