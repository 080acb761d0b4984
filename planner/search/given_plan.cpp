//===- given_plan.cpp - A plan that somebody chose, priced ----------------===//

#include "planner/search/given_plan.h"

#include <algorithm>

#include "planner/index.h"

namespace mtplan::planner {

namespace {

/// Phase times of all runs, and the same in the form that is priced.
class Priced {
public:
  Priced(const ModelGraph &graph, const PlannedParts &plans,
         const Setting &setting, const Parallelism &how)
      : times(plans.size()), parts(plans.size()) {
    for (std::size_t stage = 0; stage < at(how.pp); ++stage) {
      // A parameter that runs of one stage share is reduced there once.
      std::vector<bool> paid(graph.parameters.size(), false);
      Setting here = setting;
      here.recomputeShare = recomputeShareOf(how, static_cast<int>(stage));
      for (std::size_t part = stage; part < plans.size(); part += at(how.pp))
        for (const SegmentPlan &run : plans[part])
          times[part].push_back(phaseTimesOf(graph, run, here, paid));
    }
    for (std::size_t part = 0; part < plans.size(); ++part)
      for (std::size_t run = 0; run < plans[part].size(); ++run)
        parts[part].push_back(
            {&plans[part][run], &times[part][run], plans[part][run].count});
  }

private:
  std::vector<std::vector<PhaseTimes>> times;

public:
  PricedParts parts;
};

// The layout in which values pass from stage to stage, which the search tries
// one after the other.
Setting settingOf(const Setting &setting, const PlannedParts &parts,
                  const Parallelism &how) {
  Setting here = setting;
  if (how.pp > 1 && !parts[0].empty() && !parts[0].back().carriedOut.empty())
    here.boundary = placementOf(parts[0].back().carriedOut.front(),
                                tensorAxisOf(setting.mesh));
  return here;
}

} // namespace

StepProblem stepProblemOf(const ModelGraph &graph, const PlannedParts &parts,
                          const Setting &setting, const Parallelism &how,
                          const Overlaps &overlaps) {
  Setting here = settingOf(setting, parts, how);
  return stepProblemOf(graph, Priced(graph, parts, here, how).parts, here, how,
                       overlaps);
}

std::vector<MemoryUse> memoryByStage(const ModelGraph &graph,
                                     const PlannedParts &parts,
                                     const Setting &setting,
                                     const Parallelism &how) {
  std::vector<MemoryUse> stages;
  for (int stage = 0; stage < how.pp; ++stage) {
    std::vector<SegmentPlan> runs;
    std::vector<int> copies(graph.segments.size(), 0);
    for (std::size_t part = at(stage); part < parts.size(); part += at(how.pp))
      for (const SegmentPlan &run : parts[part]) {
        runs.push_back(run);
        copies[at(run.segment)] += run.count;
      }
    Setting here = setting;
    here.recomputeShare = recomputeShareOf(how, stage);
    here.inFlight = inFlightOf(how, stage);
    MemoryUse use = memoryOf(graph, runs, here);
    use.keepRoom(workspaceReserveOf(graph, here, copies));
    stages.push_back(use);
  }
  return stages;
}

PlannedCandidate priceGiven(const ModelGraph &graph,
                            const SearchOptions &options,
                            const Machine &machine, const Parallelism &how,
                            PlannedParts parts) {
  Setting setting = settingOf(settingOf(options, machine, how), parts, how);
  PlannedCandidate plan;
  plan.how = how;
  plan.parts = std::move(parts);
  plan.time = priceStep(graph, Priced(graph, plan.parts, setting, how).parts,
                        setting, how, options.overlaps);
  std::vector<MemoryUse> stages =
      memoryByStage(graph, plan.parts, setting, how);
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
