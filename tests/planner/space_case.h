//===- space_case.h - Small searches with everything open -------*- C++ -*-===//

#ifndef MTPLAN_TESTS_PLANNER_SPACE_CASE_H
#define MTPLAN_TESTS_PLANNER_SPACE_CASE_H

#include "planner/search/search.h"
#include "tests/planner/random_model.h"

namespace mtplan::planner {

inline SearchOptions openOptions(int devices) {
  SearchOptions options;
  options.devices = devices;
  options.globalBatch = 8;
  options.tensorSplits = {Split::row, Split::column, Split::sequence};
  options.pp = options.cp = options.virtualStages = options.zeroStage = {};
  options.schedule = {};
  options.recompute = {};
  return options;
}

/// Memory in plenty; every other pair of seeds with traffic beside compute;
/// two of five may offload, another has heavy weights and may tile them.
struct Case {
  ModelGraph model;
  Machine machine;
  SearchOptions options;
};

inline Case drawCase(unsigned seed) {
  RandomModel random(seed);
  Case drawn;
  drawn.model = random.model(3, 1, 1);
  drawn.model.segments[1].repeat = 2 + static_cast<int>(seed % 3);
  for (Parameter &parameter : drawn.model.parameters)
    parameter.copies = 1;
  for (const Tensor &tensor : drawn.model.segments[1].tensors)
    if (tensor.kind == TensorKind::parameter)
      drawn.model.parameters[static_cast<std::size_t>(tensor.parameter)]
          .copies = drawn.model.segments[1].repeat;
  drawn.machine = roundMachine(seed % 2 == 0 ? 0.0 : 1e-6);
  drawn.options = openOptions(seed % 3 == 0 ? 2 : 4);
  if (seed % 4 > 1)
    drawn.options.overlaps = {};
  if (seed % 5 == 2) {
    drawn.options.tiles = {{1, 2, 3}};
    for (Parameter &parameter : drawn.model.parameters)
      parameter.elementBytes *= 32;
    for (SegmentGraph &segment : drawn.model.segments) {
      for (Tensor &tensor : segment.tensors)
        if (tensor.kind == TensorKind::parameter)
          tensor.elementBytes *= 32;
      for (const Accumulation &sum : segment.accumulations)
        segment.tensors[static_cast<std::size_t>(sum.tensor)].elementBytes *=
            32;
    }
  }
  if (seed % 5 > 2) {
    // The host updates at half the rate that copies reach.
    drawn.machine.host = Host{Bytes{1e6}, BytesPerSec{1e9}, 0.5,
                              BytesPerSec{1e9}, Seconds{1e-7}};
    drawn.options.offload = {};
  }
  return drawn;
}

} // namespace mtplan::planner

#endif // MTPLAN_TESTS_PLANNER_SPACE_CASE_H
