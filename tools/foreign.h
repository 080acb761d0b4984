//===- foreign.h - Other trainers' configurations, in and out ---*- C++ -*-===//

#ifndef MTPLAN_TOOLS_FOREIGN_H
#define MTPLAN_TOOLS_FOREIGN_H

#include <string>
#include <vector>

#include "tools/exchange/foreign_config.h"
#include "tools/pipeline.h"

namespace mtplan::tools {

/// Fixes everything that a Megatron-LM command line, a DeepSpeed JSON or a
/// torchtitan TOML says, so that it is priced as it stands. The three are told
/// apart by their content. What contradicts the model, or is not priced yet,
/// becomes an error.
/// \param options  has devices and, unless the text says so, the global batch
void applyForeign(const std::string &file, const std::string &text,
                  const ir::LoadedModel &model, planner::SearchOptions &options,
                  std::vector<std::string> &notes,
                  std::vector<std::string> &errors);

/// The best plan in the words of another trainer.
Exported exportPlan(const PlanOutcome &outcome, ExportKind kind);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_FOREIGN_H
