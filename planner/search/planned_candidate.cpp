//===- planned_candidate.cpp - A configuration with its plan --------------===//

#include "planner/search/planned_candidate.h"

#include <algorithm>

#include "planner/integers.h"
#include "planner/search/stage/stage_solver.h"

namespace mtplan::planner {

namespace {

class Priced {
public:
  Priced(const ModelGraph &graph, const PlannedParts &plans,
         const Setting &setting, const Parallelism &config)
      : times(plans.size()), parts(plans.size()) {
    for (std::size_t stage = 0; stage < at(config.pp); ++stage) {
      // Runs of one stage that share a parameter reduce its gradient once.
      std::vector<bool> paid(graph.parameters.size(), false);
      Setting here = setting;
      here.recomputeShare = recomputeShareOf(config, static_cast<int>(stage));
      for (std::size_t part = stage; part < plans.size(); part += at(config.pp))
        for (const SegmentPlan &run : plans[part])
          times[part].push_back(phaseTimesOf(graph, run, here, paid));
    }
    for (std::size_t part = 0; part < plans.size(); ++part)
      for (std::size_t run = 0; run < plans[part].size(); ++run)
        parts[part].push_back(
            {&plans[part][run], &times[part][run], plans[part][run].count});
  }

private:
  std::vector<std::vector<PhaseTimes>> times; ///< of all runs, for `parts`

public:
  PricedParts parts;
};

// Returns `setting` with the layout in which the plan passes values between
// stages.
Setting withBoundary(const Setting &setting, const PlannedParts &parts,
                     const Parallelism &config) {
  Setting here = setting;
  if (config.pp > 1 && !parts[0].empty() &&
      !parts[0].back().carriedOut.empty()) {
    here.boundary.emplace();
    for (int axis : tensorAxesOf(setting.mesh))
      here.boundary->push_back(
          placementOf(parts[0].back().carriedOut.front(), axis));
  }
  return here;
}

} // namespace

std::vector<SegmentPlan> PlannedCandidate::plans() const {
  std::vector<SegmentPlan> all;
  for (const std::vector<SegmentPlan> &part : parts)
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

StepProblem stepProblemOf(const ModelGraph &graph, const PlannedParts &parts,
                          const Setting &setting, const Parallelism &config,
                          const Overlaps &overlaps) {
  Setting here = withBoundary(setting, parts, config);
  return stepProblemOf(graph, Priced(graph, parts, here, config).parts, here,
                       config, overlaps);
}

std::vector<MemoryUse> memoryByStage(const ModelGraph &graph,
                                     const PlannedParts &parts,
                                     const Setting &setting,
                                     const Parallelism &config) {
  std::vector<MemoryUse> stages;
  for (int stage = 0; stage < config.pp; ++stage) {
    std::vector<SegmentPlan> runs;
    std::vector<int> repeats(graph.segments.size(), 0);
    for (std::size_t part = at(stage); part < parts.size();
         part += at(config.pp))
      for (const SegmentPlan &run : parts[part]) {
        runs.push_back(run);
        repeats[at(run.segment)] += run.count;
      }
    Setting here = setting;
    here.recomputeShare = recomputeShareOf(config, stage);
    here.inFlight = inFlightOf(config, stage);
    MemoryUse use = memoryOf(graph, runs, here);
    use.reserveWorkspace(workspaceReserveOf(graph, here, repeats));
    stages.push_back(use);
  }
  return stages;
}

PlannedCandidate priceGiven(const ModelGraph &graph,
                            const SearchOptions &options,
                            const Machine &machine, const Parallelism &config,
                            PlannedParts parts) {
  Setting setting =
      withBoundary(settingOf(options, machine, config), parts, config);
  PlannedCandidate plan;
  plan.config = config;
  plan.parts = std::move(parts);
  plan.time = priceStep(graph, Priced(graph, plan.parts, setting, config).parts,
                        setting, config, options.overlaps);
  std::vector<MemoryUse> stages =
      memoryByStage(graph, plan.parts, setting, config);
  Bytes host;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    host = std::max(host, stages[stage].host);
    if (stage == 0 || stages[stage].total() > plan.memory.total()) {
      plan.memory = stages[stage];
      plan.fullestStage = static_cast<int>(stage);
    }
  }
  plan.memory.host = host;
  plan.fits = plan.memory.fits();
  plan.lowerBound = plan.time.step;
  return plan;
}

} // namespace mtplan::planner
