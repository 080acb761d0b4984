//===- report.h - Outcomes as text, JSON and exports ------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_REPORT_REPORT_H
#define MTPLAN_TOOLS_REPORT_REPORT_H

#include <string>
#include <vector>

#include "passes/verify/prove.h"
#include "tools/driver/pipeline.h"
#include "tools/exchange/trainer_config.h"

namespace mtplan::tools {

struct ScreenStyle {
  bool colour = false; ///< set only on a terminal
  /// If set, the screen shows the search time, which differs from run to run.
  bool timings = false;
};

/// Shows the best plan, which must exist, and the alternatives.
std::string screenOf(const PlanOutcome &outcome, const ScreenStyle &style);

/// Returns two lines: "gpt2-8.3b  8.30 B parameters, 72 layers, ..." and the
/// machine.
std::string headingOf(const Problem &problem, const ScreenStyle &style);

/// Shows an outcome without a plan: the nearest candidate, the reasons why
/// other meshes have no plan, and the remedies.
std::string infeasibleText(const PlanOutcome &outcome,
                           const std::vector<std::string> &remedies,
                           const ScreenStyle &style);

struct JsonStyle {
  bool timings = false;                               ///< fill search.time_s
  const passes::Proof *proof = nullptr;               ///< may be null
  const std::vector<std::string> *remedies = nullptr; ///< if no plan fits
  const std::vector<std::string> *why = nullptr;      ///< explanationsOf()
};

/// Writes an outcome without errors; docs/json-output.md describes the keys.
/// Without timings, the same input gives the same bytes. If no plan fits,
/// `plan` is null and `nearest` is the nearest candidate, if there is one.
std::string jsonOf(const PlanOutcome &outcome, const JsonStyle &style);

std::string errorsJson(const std::vector<std::string> &errors);

/// Writes the best plan, which must exist, in another format. If the trainer
/// that reads the format would run another plan, the text is empty, and the
/// refusals state the reasons.
Exported exportPlan(const PlanOutcome &outcome, ExportKind kind);

/// Simulates the best plan's step in full, and writes trace event JSON for
/// Perfetto.
std::string traceTextOf(const PlanOutcome &outcome,
                        std::vector<std::string> &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_REPORT_H
