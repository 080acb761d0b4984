//===- candidate_bounds.cpp - All bounds of one configuration -------------===//

#include "planner/search/bound/candidate_bounds.h"

#include <algorithm>

#include "planner/integers.h"

namespace mtplan::planner {

// Split layouts come first, because they are usually better and let the search
// prune the others early.
std::vector<Boundary> boundariesOf(const ModelGraph &graph,
                                   const Parallelism &config) {
  if (config.pp == 1)
    return {std::nullopt};
  std::size_t dims = 0;
  for (const SegmentGraph &segment : graph.segments)
    for (int tensor : segment.carriedIn)
      dims = std::max(dims, segment.tensors[at(tensor)].shape.size());
  std::vector<int> placements;
  for (std::size_t d = 0; config.tp > 1 && d < dims; ++d)
    placements.push_back(static_cast<int>(d));
  placements.push_back(kReplicated);
  std::vector<Boundary> all;
  for (int placement : placements)
    if (config.tp2 == 1)
      all.push_back({{placement}});
    else
      for (int second : placements)
        all.push_back({{placement, second}});
  return all;
}

CandidateBounds candidateBounds(const ModelGraph &model,
                                const Parallelism &config, Seconds lowerBound,
                                Bounds &bounds, Relaxation &relaxation) {
  CandidateBounds all{{}, bounds.memory(config)};
  for (const Boundary &layout : boundariesOf(model, config)) {
    BoundaryBound &bound = all.boundaries.emplace_back();
    bound.boundary = layout;
    bound.step = relaxation.microBatchOf(config, layout);
    if (bound.step.value == kInfinity)
      continue;
    Relaxation::StepBound step = relaxation.stepOf(config, layout);
    bound.step = std::max(lowerBound, step.quick);
    bound.stages = std::move(step.stages);
    bound.least = std::move(step.least);
    bound.times = std::move(step.times);
  }
  return all;
}

void boundByMicroBatch(Candidate &candidate, const Parallelism &once,
                       Bounds &bounds, const Relaxation &relaxation) {
  using Level = Candidate::BoundLevel;
  const Parallelism &config = candidate.config;
  const Seconds lowerBound = relaxation.microBatchOf(once) +
                             (bounds.compute(config) - bounds.compute(once));
  candidate.bound =
      std::max(candidate.bound, pipelineBound(lowerBound, config));
  candidate.level = config.recompute == once.recompute ? Level::microBatch
                                                       : Level::computedOnce;
}

void boundByRelaxation(Candidate &candidate, Relaxation &relaxation) {
  Relaxation::StepBound lowerBound = relaxation.stepOf(candidate.config);
  candidate.bound = std::max(candidate.bound, lowerBound.quick);
  candidate.relaxed = std::move(lowerBound.least.problem);
  candidate.level = Candidate::BoundLevel::relaxed;
}

} // namespace mtplan::planner
