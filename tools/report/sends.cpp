//===- sends.cpp - Messages between pipeline stages -----------------------===//

#include "tools/report/sends.h"

#include "planner/index.h"
#include "planner/search/given_plan.h"
#include "planner/search/segment/reshard_prices.h"

namespace mtplan::tools {

using planner::at;

namespace {

planner::Bytes bytesOf(const PlanFacts &facts, const planner::SegmentPlan &run,
                       const std::vector<int> &tensors,
                       const std::vector<planner::Layout> &layouts) {
  const planner::SegmentGraph &segment = facts.graph.segments[at(run.segment)];
  planner::Bytes bytes;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const planner::Tensor &tensor = segment.tensors[at(tensors[i])];
    bytes += planner::Bytes{planner::localBytes(
        tensor.shape, layouts[i], tensor.elementBytes, facts.setting.mesh)};
  }
  return bytes;
}

} // namespace

std::vector<Send> sendsOf(const Problem &problem, const PlanFacts &facts,
                          const planner::PlannedCandidate &plan) {
  std::vector<Send> sends;
  const planner::Parallelism &config = plan.config;
  if (config.pp == 1)
    return sends;
  planner::StepProblem step = planner::stepProblemOf(
      facts.graph, plan.parts, facts.setting, config, problem.options.overlaps);
  auto chunkOf = [&](int part) -> const planner::ChunkTimes & {
    return step.stages[at(part % config.pp)].chunks[at(part / config.pp)];
  };
  auto parts = static_cast<int>(plan.parts.size());
  for (int part = 0; part + 1 < parts; ++part) {
    const planner::SegmentPlan &run = plan.parts[at(part)].back();
    const planner::SegmentGraph &segment =
        facts.graph.segments[at(run.segment)];
    sends.push_back({part, part + 1, planner::LedgerPhase::forward,
                     segment.name,
                     bytesOf(facts, run, segment.carriedOut, run.carriedOut),
                     chunkOf(part).sendForward});
  }
  for (int part = parts - 1; part > 0; --part) {
    const planner::SegmentPlan &run = plan.parts[at(part)].front();
    const planner::SegmentGraph &segment =
        facts.graph.segments[at(run.segment)];
    sends.push_back({part, part - 1, planner::LedgerPhase::backward,
                     segment.name,
                     bytesOf(facts, run, segment.gradientOut, run.gradientOut),
                     chunkOf(part).sendBackward});
  }
  return sends;
}

} // namespace mtplan::tools
