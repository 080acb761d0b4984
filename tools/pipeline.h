//===- pipeline.h - From a request to a plan --------------------*- C++ -*-===//
//
// The stages in order: machine, model, backward halves, pins, search. Nothing
// here prints; whatever is wrong is collected and returned.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_PIPELINE_H
#define MTPLAN_TOOLS_PIPELINE_H

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/model/load.h"
#include "planner/search/search.h"
#include "tools/request.h"

namespace mtplan::tools {

/// Everything a plan is chosen from. Not copied: options point into it.
struct Problem {
  std::unique_ptr<mlir::MLIRContext> context; ///< outlives the modules
  ir::LoadedModel model;                      ///< for one sample, forward only
  mlir::OwningOpRef<mlir::ModuleOp> differentiated; ///< cut where pins differ
  std::string machineText, softwareText; ///< of the files; none: the default's
  planner::Machine machine;
  planner::Software software = planner::defaultSoftware();
  planner::ModelGraph graph; ///< of `differentiated`
  planner::Pins pins;
  planner::SearchOptions options;
  std::vector<std::string> notes;
};

/// Null on bad input; then `errors` has every violation.
std::unique_ptr<Problem> buildProblem(const PlanRequest &request,
                                      std::vector<std::string> &errors);

/// Something that an objective had to try, and why it did not do.
struct Attempt {
  std::string what, failure;
};

struct PlanOutcome {
  PlanRequest asked;
  std::unique_ptr<Problem> problem; ///< null: see errors
  planner::SearchResult result;
  double searchSeconds = 0.0;
  std::vector<Attempt> attempts;
  std::string claim; ///< what is said of the best plan; empty: that it is best
  std::vector<std::string> errors;

  const planner::PlannedCandidate *best() const {
    return result.plans.empty() ? nullptr : &result.plans.front();
  }
};

/// Builds the problem and, unless something was wrong, searches.
/// \param errors  what was found wrong already
PlanOutcome plan(const PlanRequest &request,
                 std::vector<std::string> errors = {});

/// Searches the outcome's problem as it is now; `asked` limits time and budget.
void searchProblem(PlanOutcome &outcome);

/// Adds notes about what was found.
void finishOutcome(PlanOutcome &outcome);

/// The problem's module as it is after `stage`; `candidate` may be null for
/// stages before planned. Null, with errors, if a gate objects.
mlir::OwningOpRef<mlir::ModuleOp>
moduleOf(const Problem &problem, Stage stage,
         const planner::PlannedCandidate *candidate,
         std::vector<std::string> &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_PIPELINE_H
