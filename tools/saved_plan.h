//===- saved_plan.h - A plan as a file, and back ----------------*- C++ -*-===//
//
// Everything that fixes a plan: what was asked, the machine and the software it
// was priced on, how the devices are shared out, and of every run of equal
// copies each operator's strategy, each parameter's state, what is kept for
// backward and every change of layout. docs/plan-files.md has the keys. Prices
// are not read: a plan that is loaded is priced again.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_SAVED_PLAN_H
#define MTPLAN_TOOLS_SAVED_PLAN_H

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tools/pipeline.h"

namespace mtplan::tools {

inline constexpr std::int64_t kPlanFileVersion = 1;

/// The file of an outcome that has a best plan; the other plans and what was
/// rejected are in it too, so that loading it gives the same report.
std::string savedPlanOf(const PlanOutcome &outcome);

/// The outcome as it was saved. What is wrong with the file, or contradicts the
/// model, becomes an error with its JSON pointer.
/// \param flags  `load`, and instead of what the file says perhaps `model`,
///               `hardware`, `software` and `scaleNetwork`. On another machine
///               the best plan alone is priced.
PlanOutcome loadPlan(const Flags &flags);

/// A number that two models share only if they are the same.
std::string fingerprintOf(const Problem &problem);

/// One run of copies, but for their number.
nlohmann::ordered_json runJson(const planner::ModelGraph &graph,
                               const planner::SegmentPlan &run,
                               const planner::Mesh &mesh);

/// The opposite; `first` and `count` are left alone.
/// \param graph  for the candidate's samples
std::optional<planner::SegmentPlan> readRun(const nlohmann::json &value,
                                            const std::string &pointer,
                                            const planner::ModelGraph &graph,
                                            const planner::Setting &setting,
                                            std::vector<std::string> &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_SAVED_PLAN_H
