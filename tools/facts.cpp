//===- facts.cpp - What a report says about a plan ------------------------===//

#include "tools/facts.h"

#include <algorithm>
#include <map>

#include "tools/units_text.h"

namespace mtplan::tools {

using planner::PlannedCandidate;
using planner::Rejection;

namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

RunFact runOf(const PlanFacts &facts, const planner::SegmentPlan &plan) {
  const planner::SegmentGraph &segment = facts.graph.segments[at(plan.segment)];
  const planner::Mesh &mesh = facts.setting.mesh;
  RunFact run{segment.name, plan.first, plan.count, {}, {}, {}};
  for (std::size_t o = 0; o < segment.ops.size(); ++o) {
    const planner::Op &op = segment.ops[o];
    planner::Layout layout = planner::resultLayout(op, plan.strategies[o], 0);
    run.ops.push_back(
        {op.name, op.kind, planner::describe(op, plan.strategies[o], mesh),
         op.phase,
         planner::localShape(segment.tensors[at(op.results[0].tensor)].shape,
                             layout, mesh),
         planner::toString(layout, mesh)});
  }
  for (std::size_t p = 0; p < plan.parameters.size(); ++p)
    if (plan.parameters[p]) {
      const planner::Parameter &parameter = facts.graph.parameters[p];
      const planner::ParameterState &state = *plan.parameters[p];
      run.parameters.push_back(
          {parameter.name, planner::toString(state.stored, mesh),
           planner::localShape(parameter.shape, state.stored, mesh),
           state.reduceOncePerStep});
    }
  run.collectives = planner::ledgerOf(facts.graph, {plan}, facts.setting);
  return run;
}

// True if an operator without products of its own works on split positions.
bool usesSequenceSplit(const PlanFacts &facts, const PlannedCandidate &plan) {
  for (const planner::SegmentPlan &run : plan.plans) {
    const planner::SegmentGraph &segment =
        facts.graph.segments[at(run.segment)];
    for (std::size_t o = 0; o < segment.ops.size(); ++o)
      if (segment.ops[o].opClass == planner::OpClass::memory &&
          segment.ops[o].phase == planner::Phase::forward &&
          std::string_view("sequence") == planner::wordOf(segment.ops[o],
                                                          run.strategies[o],
                                                          planner::kTensorAxis))
        return true;
  }
  return false;
}

std::string meshName(int dp, int tp) {
  return "dp " + std::to_string(dp) + " x tp " + std::to_string(tp);
}

} // namespace

PlanFacts factsOf(const Problem &problem, const PlannedCandidate &candidate) {
  PlanFacts facts;
  const planner::SearchOptions &options = problem.options;
  facts.setting = planner::settingOf(options, problem.machine, candidate.dp,
                                     candidate.tp, candidate.microBatch);
  facts.graph =
      planner::withBatch(problem.graph, candidate.microBatch * candidate.dp);
  for (const planner::SegmentPlan &plan : candidate.plans)
    facts.runs.push_back(runOf(facts, plan));
  facts.collectives =
      planner::ledgerOf(facts.graph, candidate.plans, facts.setting);
  double step = candidate.time.step.value;
  facts.tokensPerSecond = static_cast<double>(options.globalBatch) *
                          static_cast<double>(facts.graph.sequence) / step;
  facts.modelRate = {facts.graph.modelFlops.value *
                     static_cast<double>(candidate.microBatches) / step /
                     options.devices};
  if (auto peak = problem.machine.device.peak(options.precision))
    facts.mfu = facts.modelRate / *peak;
  facts.sequenceParallel = usesSequenceSplit(facts, candidate);
  return facts;
}

int nodesOf(const Problem &problem) {
  int perNode = problem.machine.devicesPerNode;
  return (problem.options.devices + perNode - 1) / perNode;
}

std::string reasonAgainst(const PlannedCandidate &candidate,
                          const PlannedCandidate &best) {
  struct Part {
    const char *name;
    planner::Seconds here, there;
  };
  const planner::StepTime &a = candidate.time, &b = best.time;
  const Part parts[] = {{"compute", a.compute, b.compute},
                        {"tensor communication", a.tensor, b.tensor},
                        {"data communication", a.data, b.data},
                        {"local copies", a.local, b.local},
                        {"update", a.update, b.update}};
  const Part *most = std::ranges::max_element(parts, {}, [](const Part &part) {
    return (part.here - part.there).value;
  });
  return std::string(most->name) + ' ' + timeText(most->here) + " against " +
         timeText(most->there);
}

std::vector<std::string> rejectedMeshes(const PlanOutcome &outcome) {
  struct Mesh {
    int dp = 1, tp = 1;
    const Rejection *divisor = nullptr, *memory = nullptr, *bound = nullptr,
                    *pins = nullptr;
  };
  std::map<std::pair<int, int>, Mesh> meshes;
  for (const Rejection &rejection : outcome.result.rejections) {
    Mesh &mesh = meshes[{rejection.tp, rejection.dp}];
    mesh.dp = rejection.dp;
    mesh.tp = rejection.tp;
    // Of several, the one that came nearest.
    switch (rejection.reason) {
    case Rejection::Reason::divisor:
      mesh.divisor = &rejection;
      break;
    case Rejection::Reason::memory:
      if (!mesh.memory || rejection.needed < mesh.memory->needed)
        mesh.memory = &rejection;
      break;
    case Rejection::Reason::bound:
      if (!mesh.bound || rejection.bound < mesh.bound->bound)
        mesh.bound = &rejection;
      break;
    case Rejection::Reason::pins:
      mesh.pins = &rejection;
      break;
    }
  }
  for (const PlannedCandidate &plan : outcome.result.plans)
    meshes.erase({plan.tp, plan.dp});
  std::vector<std::string> lines;
  for (const auto &[key, mesh] : meshes) {
    std::string why;
    if (mesh.bound)
      why = "no plan is faster than " + timeText(mesh.bound->bound);
    else if (mesh.memory)
      why = (mesh.memory->isFloor ? "needs at least "
                                  : "the smallest plan needs ") +
            gibText(mesh.memory->needed) + " of " +
            gibText(outcome.problem->machine.device.memory) + " GiB";
    else if (mesh.pins)
      why = mesh.pins->detail.empty() ? "no plan obeys the pins"
                                      : mesh.pins->detail;
    else
      why = mesh.divisor->detail;
    lines.push_back(meshName(mesh.dp, mesh.tp) + ": " + why);
  }
  return lines;
}

} // namespace mtplan::tools
