//===- scaled_link.cpp - From one micro-batch to those of a step ----------===//

#include "planner/search/segment/scaled_link.h"

#include <algorithm>

#include "planner/index.h"

namespace mtplan::planner {

Link scaledLink(const SegmentProblem &unit, const ModelGraph &model,
                const Setting &setting, int repeats) {
  Link link = unit.link;
  link.repeat = repeats;
  auto microBatches = static_cast<double>(setting.microBatches);
  for (std::size_t t = 0; t < unit.growth.size(); ++t) {
    CostTable &table = link.problem.tables[t];
    auto [growth, parameter] = unit.growth[t];
    if (growth == Growth::perMicroBatch) {
      for (double &seconds : table.time)
        seconds *= microBatches;
      for (double &bytes : table.memory)
        bytes *= setting.inFlight;
    } else if (growth == Growth::carriedOut) {
      for (double &bytes : table.memory)
        bytes *= setting.inFlight * std::min(setting.parts, repeats) / repeats;
    } else if (growth == Growth::perChunk) {
      for (double &bytes : table.memory)
        bytes *=
            static_cast<double>(std::min(setting.parts, repeats)) / repeats;
    } else if (growth == Growth::sharedByRepeats) {
      for (std::vector<double> *costs : {&table.time, &table.memory})
        for (double &cost : *costs)
          cost /= repeats;
    } else if (growth == Growth::accumulation) {
      const auto &states = unit.parameterStates[at(parameter)];
      for (std::size_t s = 0; s < states.size(); ++s)
        table.time[s] = accumulationTime(model.parameters[at(parameter)],
                                         states[s], setting)
                            .value;
    }
  }
  return link;
}

SegmentProblem buildSegmentProblem(const ModelGraph &model, int segment,
                                   const Setting &setting,
                                   const std::vector<bool> &owner) {
  SegmentProblem problem = unitProblem(model, segment, setting, owner);
  problem.link = scaledLink(problem, model, setting, problem.link.repeat);
  return problem;
}

} // namespace mtplan::planner
