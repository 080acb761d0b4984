//===- pipeline.h - From a request to a plan --------------------*- C++ -*-===//
//
// The stages run in order: machine, model, backward, pins, search. No stage
// prints; all return their errors.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_DRIVER_PIPELINE_H
#define MTPLAN_TOOLS_DRIVER_PIPELINE_H

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"

#include "ir/model/load.h"
#include "planner/search/search.h"
#include "tools/driver/request.h"

namespace mtplan::tools {

/// Holds the inputs of a search. A problem must stay at its address, because
/// `options` points into the problem.
struct Problem {
  std::unique_ptr<mlir::MLIRContext>
      context;           ///< declared first, to outlive the modules
  ir::LoadedModel model; ///< one sample, forward only
  /// Holds the differentiated module: the forward and backward halves. Layers
  /// with different pins are in separate segments.
  mlir::OwningOpRef<mlir::ModuleOp> differentiated;
  std::string machineText,
      softwareText; ///< texts of the files; softwareText may be empty
  planner::Machine machine;
  planner::Software software = planner::defaultSoftware();
  planner::ModelGraph graph; ///< graph of `differentiated`
  planner::Pins pins;
  planner::SearchOptions options;
  std::vector<std::string> notes;
};

/// Returns null on bad input; `errors` then has every violation.
std::unique_ptr<Problem> buildProblem(const PlanRequest &request,
                                      std::vector<std::string> &errors);

/// Describes a search that found no plan: `what` is the number of GPUs or the
/// memory size.
struct Attempt {
  std::string what, failure;
};

struct PlanOutcome {
  PlanRequest asked;
  std::unique_ptr<Problem> problem; ///< null if there are errors
  planner::SearchResult result;
  planner::Bytes keptFree; ///< memory that plans of `result` leave free
  double searchSeconds = 0.0;
  std::vector<Attempt> attempts;
  std::string claim; ///< about the best plan; empty: from `result`
  std::vector<std::string> errors;

  const planner::PlannedCandidate *best() const {
    return result.plans.empty() ? nullptr : &result.plans.front();
  }
};

/// Builds the problem and, if there are no errors, searches for plans.
/// \param errors  earlier errors, which become part of the outcome
PlanOutcome plan(const PlanRequest &request,
                 std::vector<std::string> errors = {});

/// Searches the outcome's problem, within the limits `maxStepTime` and `budget`
/// of `asked`.
void searchProblem(PlanOutcome &outcome);

/// Adds notes about the best plan to the problem, for the report.
void finishOutcome(PlanOutcome &outcome);

/// Returns the problem's module after `stage`; `candidate` may be null for
/// stages before planned. Returns null, with errors, if a verification pass
/// rejects the module.
mlir::OwningOpRef<mlir::ModuleOp>
moduleOf(const Problem &problem, Stage stage,
         const planner::PlannedCandidate *candidate,
         std::vector<std::string> &errors);

/// While this object exists, errors of the MLIR context become lines of
/// `errors`.
class CapturedDiagnostics {
public:
  CapturedDiagnostics(mlir::MLIRContext &context,
                      std::vector<std::string> &errors)
      : handler(&context, [&errors](mlir::Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error)
            return mlir::success();
          std::string line;
          llvm::raw_string_ostream stream(line);
          auto place =
              llvm::dyn_cast<mlir::FileLineColLoc>(diagnostic.getLocation());
          if (place)
            stream << place.getFilename().getValue() << ':' << place.getLine()
                   << ':' << place.getColumn() << ": ";
          stream << diagnostic.str();
          errors.push_back(stream.str());
          return mlir::success();
        }) {}

private:
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_PIPELINE_H
