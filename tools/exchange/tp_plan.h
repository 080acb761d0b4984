//===- tp_plan.h - Hugging Face's base_model_tp_plan ------------*- C++ -*-===//
//
// A dictionary in a model's configuration from module names to the way their
// weights are split: {"layers.*.self_attn.q_proj": "colwise", ...}. It names
// modules as Hugging Face does, so each family has its own words for mtplan's
// operators.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_EXCHANGE_TP_PLAN_H
#define MTPLAN_TOOLS_EXCHANGE_TP_PLAN_H

#include <string>
#include <vector>

#include "planner/graph/layout.h"
#include "tools/exchange/foreign_config.h"

namespace mtplan::tools {

/// Pins in the words of planner/search/pins.h.
struct PlanPins {
  std::vector<std::string> pins; ///< "h.*.attn.q=column"
  std::vector<std::string> warnings;
  std::vector<std::string> errors; ///< each starts with a JSON pointer
};

/// Reads a config.json that has a `base_model_tp_plan`, or such a dictionary
/// alone. `family` is a `model_type`; empty: as the file says.
PlanPins readTpPlan(const std::string &text, const std::string &family);

/// A parameter by its label, "h.*.attn.q.weight" or with a layer's number,
/// and how the weight, [in, out] or [vocabulary, hidden], lies over a mesh with
/// an axis "tp".
struct PlacedParameter {
  std::string name;
  planner::Layout layout;
};

/// JSON for that family's configuration. Weights that tp does not split are
/// left out; what the notation cannot say is noted.
Exported writeTpPlan(const std::string &family,
                     const std::vector<PlacedParameter> &parameters,
                     const planner::Mesh &mesh);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_TP_PLAN_H
