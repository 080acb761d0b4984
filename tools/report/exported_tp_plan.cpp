//===- exported_tp_plan.cpp - A plan's tensor ranks in transformers -------===//

#include <algorithm>

#include <fmt/format.h>

#include "planner/integers.h"
#include "tools/driver/plan_text.h"
#include "tools/exchange/tp_plan.h"
#include "tools/report/exported_shardings.h"
#include "tools/report/plan_facts.h"
#include "tools/report/tensor_splits.h"

namespace mtplan::tools {

using planner::at;
using planner::Layout;
using planner::SegmentPlan;

namespace {

// Adds each weight of each layer of a run, in the layout in which the first
// operator reads the weight. The head's table is added as lm_head.weight,
// [in][out].
void addRun(const planner::ModelGraph &graph, const SegmentPlan &run, int axis,
            std::vector<PlacedParameter> &placed, Exported &out) {
  const planner::SegmentGraph &segment = graph.segments[at(run.segment)];
  std::vector<int> added;
  for (std::size_t o = 0; o < segment.ops.size(); ++o) {
    const planner::Op &op = segment.ops[o];
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const int p = segment.tensors[at(op.operands[i].tensor)].parameter;
      if (op.phase != planner::Phase::forward || p < 0 ||
          !run.parameters[at(p)] || std::ranges::find(added, p) != added.end())
        continue;
      added.push_back(p);
      Layout used =
          planner::operandLayout(op, run.strategies[o], static_cast<int>(i));
      const std::string &name = graph.parameters[at(p)].name;
      // If a bias is added to partial sums, only one rank adds the bias. Such a
      // bias may be stored in any layout.
      const int place = planner::placementOf(used, axis);
      if (place != planner::kPartial &&
          planner::placementOf(run.parameters[at(p)]->stored, axis) != place)
        out.refuse(fmt::format(
            "{} is stored in another layout over tp than it is used in, which "
            "transformers does not support; nearest: --splits "
            "column,row,head,vocab, or --export dtensor",
            nameOfLayers(name, run.first, run.count)));
      if (op.name == "lm_head" && name == "wte.weight") {
        std::swap(used.dims[0], used.dims[1]);
        placed.push_back({"lm_head.weight", used});
        continue;
      }
      const int count = name.find('*') == name.npos ? 1 : run.count;
      for (int copy = run.first; copy < run.first + count; ++copy)
        placed.push_back({nameOfLayers(name, copy, 1), used});
    }
  }
}

} // namespace

Exported exportTpPlan(const PlanOutcome &outcome) {
  const Problem &problem = *outcome.problem;
  const planner::PlannedCandidate &plan = *outcome.best();
  const planner::Mesh mesh = planner::meshOf(plan.config);
  std::vector<PlacedParameter> placed;
  Exported stored;
  if (plan.config.tp2 > 1) {
    stored.refuse(twoAxesText("transformers", plan.config));
    return stored;
  }
  for (const SegmentPlan &run : plan.plans())
    addRun(problem.graph, run, planner::tensorAxisOf(mesh), placed, stored);
  Exported out = writeTpPlan(problem.model.family, placed, mesh);
  if (out.refusals.empty())
    out.refusals = stored.refusals;
  if (plan.config.tp > 1 && factsOf(problem, plan).sequenceParallel)
    refuseSequenceSplit(plan.config.tp, "transformers", out);
  if (plan.config.devices() > plan.config.tp)
    out.note(fmt::format("the text says how tp {} splits the weights; set the "
                         "rest of {} elsewhere",
                         plan.config.tp, meshText(plan.config)));
  return out;
}

} // namespace mtplan::tools
