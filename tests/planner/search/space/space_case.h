//===- space_case.h - Small searches with everything open -------*- C++ -*-===//

#ifndef MTPLAN_TESTS_PLANNER_SEARCH_SPACE_SPACE_CASE_H
#define MTPLAN_TESTS_PLANNER_SEARCH_SPACE_SPACE_CASE_H

#include "planner/search/search.h"
#include "planner/search/space/enumerate.h"
#include "planner/search/space/pipeline_parts.h"
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

/// Returns every configuration, including uneven stages and recomputation
/// counts, which enumerateSpace() represents by another configuration.
inline std::vector<Parallelism> wholeSpace(const ModelGraph &model,
                                           const Machine &machine,
                                           const SearchOptions &options) {
  std::vector<Parallelism> all;
  std::vector<Rejection> rejections;
  for (const Parallelism &one :
       enumerateSpace(model, machine, options, rejections)) {
    std::vector<Parallelism> cuts{one};
    if (allowsUnevenCut(one, options))
      for (std::vector<int> &layers : unevenCuts(layersOf(model), one.pp)) {
        cuts.push_back(one);
        cuts.back().layers = std::move(layers);
      }
    for (const Parallelism &cut : cuts)
      for (int count : recomputeCounts(cut, options))
        all.push_back(withCount(cut, count));
  }
  return all;
}

/// Turns the first dimension of weights in the middle segments into experts,
/// along which products may be split.
inline void addExperts(ModelGraph &model) {
  for (SegmentGraph &segment : model.segments)
    if (isLayer(segment))
      for (Op &op : segment.ops)
        if (op.factors.size() == 4) {
          op.factors[1].divisible = false;
          op.factors[2].split = Split::expert;
          for (const Use &use : op.operands) {
            const Tensor &tensor =
                segment.tensors[static_cast<std::size_t>(use.tensor)];
            if (tensor.kind == TensorKind::parameter)
              model.parameters[static_cast<std::size_t>(tensor.parameter)]
                  .splits[0] = Split::expert;
          }
        }
}

/// Describes a random search with ample memory. Two of four seeds overlap
/// communication; two of five may offload; one of five has large weights and
/// may tile them; one of seven has larger segments with fused consumers.
struct Case {
  ModelGraph model;
  Machine machine;
  SearchOptions options;
  bool fuses = false; ///< fuses consumers, in larger segments
};

inline Case drawCase(unsigned seed) {
  RandomModel random(seed);
  Case drawn;
  drawn.fuses = seed % 7 == 3;
  drawn.model = drawn.fuses ? random.model(3, 2, 2) : random.model(3, 1, 1);
  drawn.model.segments[1].repeat = 2 + static_cast<int>(seed % 3);
  for (Parameter &parameter : drawn.model.parameters)
    parameter.copies = 1;
  for (const Tensor &tensor : drawn.model.segments[1].tensors)
    if (tensor.kind == TensorKind::parameter)
      drawn.model.parameters[static_cast<std::size_t>(tensor.parameter)]
          .copies = drawn.model.segments[1].repeat;
  drawn.machine = roundMachine(seed % 2 == 0 ? 0.0 : 1e-6);
  if (drawn.fuses)
    fuseConsumers(drawn.model, drawn.machine);
  drawn.options = openOptions(seed % 3 == 0 ? 2 : 4);
  if (seed % 4 > 1)
    drawn.options.overlaps = {};
  if (seed % 5 == 2) {
    drawn.options.tiles = {{1, 2, 8}};
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
    // Updates reach half of the host's 1 GB/s, and copies reach 1 GB/s.
    drawn.machine.host = Host{Bytes{1e6}, BytesPerSec{1e9}, 0.5,
                              BytesPerSec{1e9}, Seconds{1e-7}};
    drawn.options.offload = {};
  }
  return drawn;
}

/// Adds experts and opens the options that are off by default. Nodes have two
/// devices, and the network between nodes is `slower` times slower than the
/// links inside a node.
inline void openEverything(Case &drawn, double slower) {
  addExperts(drawn.model);
  drawn.options.ep = drawn.options.recomputeLayers =
      drawn.options.zeroRanks = {};
  drawn.options.unevenCuts = true;
  NetworkLevel node = drawn.machine.levels[0];
  node.ranks = drawn.machine.devicesPerNode = 2;
  drawn.machine.levels[0].bandwidth = node.bandwidth / slower;
  drawn.machine.levels.insert(drawn.machine.levels.begin(), node);
}

} // namespace mtplan::planner

#endif // MTPLAN_TESTS_PLANNER_SEARCH_SPACE_SPACE_CASE_H
