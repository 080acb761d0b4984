//===- solved_stages.cpp - The step's bound by solved stages --------------===//

#include "planner/search/solved_stages.h"

#include <algorithm>
#include <map>

#include "planner/integers.h"

namespace mtplan::planner {

Seconds SolvedStages::raise(Seconds bound, const BoundaryBound &known,
                            Seconds step, SolveLimits limits) const {
  constexpr double kFar = 1e-4;
  constexpr int kRounds = 8;
  const Seconds enough = step * (1.0 - kFar);
  auto raiseBy = [&](auto boundOf) {
    if (!known.least.compute.empty() && bound < enough)
      bound = std::max(bound, std::min(boundOf(), step));
  };
  raiseBy([&] { return pathBound(known.least, compute, enough, kRounds); });
  raiseBy([&] { return byLastBackward(known.stages, limits); });
  if (config.virtualStages > 1)
    raiseBy([&] {
      return pathBound(leastByChunk(known.least), compute, enough, kRounds);
    });
  return bound;
}

// Bounds the step by the last backward of the stage whose compute gives the
// largest bound.
Seconds SolvedStages::byLastBackward(const std::vector<StageBound> &bounds,
                                     SolveLimits limits) const {
  int last = -1;
  Seconds most;
  for (int stage = 0; stage < config.pp; ++stage) {
    const Seconds byStage = bounds[at(stage)].ofWork(compute[at(stage)]);
    if (bounds[at(stage)].lastBackward.weightsShare > 0.0 && byStage > most) {
      most = byStage;
      last = stage;
    }
  }
  if (last < 0)
    return {};
  const StageBound::LastBackward &of = bounds[at(last)].lastBackward;
  Setting here = setting;
  here.recomputeShare = recomputeShareOf(config, last);
  here.weightsShare = of.weightsShare;
  const Seconds longer =
      compute.front() / static_cast<double>(config.microBatches()) -
      bounds.front().microBatch;
  return of.fixed + std::max(longer, Seconds{}) +
         StageSolver(graph, here, config, cache)
             .solve(repeatsOf(graph, held[at(last)]), inFlightOf(config, last),
                    limits)
             .looseBound;
}

// Returns `least` after raising each chunk's compute to the least compute that
// the stage's solver problem allows.
LeastStep SolvedStages::leastByChunk(LeastStep least) const {
  Setting here = setting;
  std::map<std::pair<double, std::vector<int>>, std::vector<Seconds>> timesOf;
  for (int stage = 0; stage < config.pp; ++stage) {
    here.recomputeShare = recomputeShareOf(config, stage);
    const std::vector<int> repeats = repeatsOf(graph, held[at(stage)]);
    auto [entry, isNew] = timesOf.try_emplace({here.recomputeShare, repeats});
    if (isNew)
      entry->second =
          StageSolver(graph, here, config, cache).leastTimes(repeats);
    for (std::size_t chunk = 0; chunk < held[at(stage)].size(); ++chunk) {
      Seconds sum;
      for (const RepeatRange &range : held[at(stage)][chunk])
        sum += range.count * entry->second[at(range.segment)];
      Seconds &one = least.compute[chunk * at(config.pp) + at(stage)];
      one = std::max(one, sum / static_cast<double>(config.microBatches()));
    }
  }
  return least;
}

} // namespace mtplan::planner
