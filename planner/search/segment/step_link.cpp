//===- step_link.cpp - A segment with the costs of a step -----------------===//

#include "planner/search/segment/step_link.h"

#include <algorithm>

#include "planner/integers.h"

namespace mtplan::planner {

Link scaledLink(const SegmentProblem &unit, const ModelGraph &model,
                const Setting &setting, int repeats, int all) {
  Link link = unit.link;
  link.repeat = repeats;
  auto microBatches = static_cast<double>(setting.microBatches);
  for (std::size_t t = 0; t < unit.scales.size(); ++t) {
    CostTable &table = link.problem.tables[t];
    const auto [costScale, recomputed, parameter, ofWeights, isWeighted] =
        unit.scales[t];
    if (recomputed) {
      for (double &seconds : table.time)
        seconds *= 1.0 + setting.recomputeShare;
      for (double &bytes : table.memory)
        bytes *= 1.0 - setting.recomputeShare;
    }
    if (costScale == CostScale::perMicroBatch) {
      const double weight = isWeighted ? 1.0 : unit.computeWeight;
      for (double &seconds : table.time)
        if (seconds < kInfinity)
          seconds *= weight * microBatches;
      for (double &bytes : table.memory)
        bytes *= setting.inFlight;
    } else if (costScale == CostScale::carriedOut) {
      for (double &bytes : table.memory)
        bytes *= setting.inFlight * std::min(setting.parts, all) / all;
    } else if (costScale == CostScale::perChunk) {
      for (double &bytes : table.memory)
        bytes *= static_cast<double>(std::min(setting.parts, all)) / all;
    } else if (costScale == CostScale::sharedByRepeats) {
      for (std::vector<double> *costs : {&table.time, &table.memory})
        for (double &cost : *costs)
          cost /= all;
    } else if (costScale == CostScale::accumulation) {
      const auto &states = unit.parameterStates[at(parameter)];
      for (std::size_t s = 0; s < states.size(); ++s)
        table.time[s] = unit.computeWeight *
                        accumulationTime(model.parameters[at(parameter)],
                                         states[s], setting)
                            .value;
    }
    if (ofWeights)
      for (double &seconds : table.time)
        seconds *= setting.weightsShare;
  }
  return link;
}

SegmentProblem buildSegmentProblem(const ModelGraph &model, int segment,
                                   const Setting &setting,
                                   const std::vector<bool> &owner) {
  SegmentProblem problem = unitProblem(model, segment, setting, owner);
  const int repeats = problem.link.repeat;
  problem.link = scaledLink(problem, model, setting, repeats, repeats);
  return problem;
}

} // namespace mtplan::planner
