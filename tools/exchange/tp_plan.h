//===- tp_plan.h - Hugging Face's base_model_tp_plan ------------*- C++ -*-===//
//
// A dictionary in a model's configuration maps module names to splits of
// weights: {"layers.*.self_attn.q_proj": "colwise", ...}. A DistributedConfig
// overrides the dictionary. Its names begin at the root module:
// "model.layers.*.self_attn.q_proj". Each model family has its own names for
// the same operators.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_EXCHANGE_TP_PLAN_H
#define MTPLAN_TOOLS_EXCHANGE_TP_PLAN_H

#include <string>
#include <vector>

#include "planner/graph/layout.h"
#include "tools/exchange/trainer_config.h"

namespace mtplan::tools {

/// Holds pins in the form of planner/search/space/pins.h.
struct PlanPins {
  std::vector<std::string> pins; ///< "h.*.attn.q=column"
  std::vector<std::string> warnings;
  std::vector<std::string> errors; ///< each starts with a JSON pointer
};

/// Reads a config.json with a `base_model_tp_plan`, or only that dictionary. If
/// `family` is empty, the `model_type` of the file names the family.
PlanPins readTpPlan(const std::string &text, const std::string &family);

/// Describes a weight of shape [in][out] or [vocabulary][hidden]. The mesh of
/// the layout has an axis "tp".
struct PlacedParameter {
  std::string name; ///< "h.*.attn.q.weight" or "h.3.attn.q.weight"
  planner::Layout layout;
};

/// Writes the fields `tp_size` and `tp_plan` of transformers' DistributedConfig
/// as JSON. The plan names every product and table, because transformers keeps
/// its own rule for modules that a plan leaves out.
Exported writeTpPlan(const std::string &family,
                     const std::vector<PlacedParameter> &parameters,
                     const planner::Mesh &mesh);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_TP_PLAN_H
