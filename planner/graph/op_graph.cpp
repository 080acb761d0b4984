//===- op_graph.cpp - A training step as the planner sees it --------------===//

#include "planner/graph/op_graph.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "planner/integers.h"

namespace mtplan::planner {

const char *nameOf(Split split) {
  constexpr const char *kNames[] = {"batch",  "sequence", "column",
                                    "row",    "head",     "vocab",
                                    "expert", "feature",  "hidden"};
  return kNames[static_cast<std::size_t>(split)];
}

namespace {

// Returns the number of samples for which the graph was built: the batch size
// of an input or, without such an input, of the first tensor with a batch
// dimension. The result is 0 if no tensor has a batch dimension.
std::int64_t samplesOf(const ModelGraph &graph) {
  std::int64_t any = 0;
  for (const SegmentGraph &segment : graph.segments)
    for (const Tensor &tensor : segment.tensors) {
      if (tensor.batchDim < 0)
        continue;
      std::int64_t size = tensor.shape[at(tensor.batchDim)];
      if (tensor.kind == TensorKind::input)
        return size;
      if (any == 0)
        any = size;
    }
  return any;
}

// Returns, per factor, whether the factor runs along a batch dimension.
std::vector<bool> batchFactorsOf(const Op &op, const SegmentGraph &segment) {
  std::vector<bool> marked(op.factors.size(), false);
  for (const std::vector<Use> *uses : {&op.operands, &op.results})
    for (const Use &use : *uses) {
      int dim = segment.tensors[at(use.tensor)].batchDim;
      if (dim >= 0 && use.factors[at(dim)] >= 0)
        marked[at(use.factors[at(dim)])] = true;
    }
  return marked;
}

bool followsBatch(const Op &op, const SegmentGraph &segment) {
  for (const std::vector<Use> *uses : {&op.operands, &op.results})
    for (const Use &use : *uses)
      if (segment.tensors[at(use.tensor)].batchDim >= 0)
        return true;
  return false;
}

} // namespace

bool isOfExperts(const Parameter &parameter) {
  return contains(parameter.splits, Split::expert);
}

bool isAccumulated(const SegmentGraph &segment, int tensor) {
  return std::ranges::find(segment.accumulations, tensor,
                           &Accumulation::tensor) !=
         segment.accumulations.end();
}

bool makesWeightGradients(const SegmentGraph &segment, const Op &op) {
  return op.phase == Phase::backward &&
         std::ranges::all_of(op.results, [&](const Use &result) {
           return isAccumulated(segment, result.tensor);
         });
}

bool isCarriedOut(const SegmentGraph &segment, int tensor) {
  for (std::size_t i = 0; i < segment.carriedIn.size(); ++i)
    if (segment.carriedIn[i] == tensor && i < segment.carriedOut.size() &&
        segment.carriedOut[i] == tensor)
      return true;
  return false;
}

void shareSegments(ModelGraph &graph) {
  std::vector<bool> seen(graph.parameters.size(), false);
  for (const SegmentGraph &segment : graph.segments) {
    std::vector<Parameter *> own;
    std::array<double, 2> all{}; // elements of non-experts, and of experts
    for (const Tensor &tensor : segment.tensors) {
      if (tensor.kind != TensorKind::parameter || seen[at(tensor.parameter)])
        continue;
      seen[at(tensor.parameter)] = true;
      Parameter *parameter = &graph.parameters[at(tensor.parameter)];
      parameter->ofSegment = elementsOf(parameter->shape);
      all[isOfExperts(*parameter) ? 1 : 0] += parameter->ofSegment;
      own.push_back(parameter);
    }
    for (Parameter *parameter : own)
      parameter->ofSegment /= all[isOfExperts(*parameter) ? 1 : 0];
  }
}

bool isLayer(const SegmentGraph &segment) {
  return segment.repeat > 1 ||
         std::ranges::any_of(segment.ops, [](const Op &op) {
           return op.name.find('*') != op.name.npos;
         });
}

bool hasLayers(const ModelGraph &graph) {
  return std::ranges::any_of(graph.segments, isLayer);
}

// Batch dimensions are scaled rather than set, because the capacity of an
// expert is a number of tokens, and a sample has several tokens. A scaled size
// that is no integer is rounded up.
ModelGraph withBatch(const ModelGraph &graph, std::int64_t samples) {
  assert(samples > 0);
  ModelGraph scaled = graph;
  std::int64_t before = samplesOf(graph);
  if (before == 0 || before == samples)
    return scaled;
  auto scale = [&](std::int64_t size) {
    return (size * samples + before - 1) / before;
  };
  double ratio = static_cast<double>(samples) / static_cast<double>(before);
  scaled.modelFlops = scaled.modelFlops * ratio;
  for (SegmentGraph &segment : scaled.segments) {
    for (Op &op : segment.ops) {
      std::vector<bool> marked = batchFactorsOf(op, segment);
      for (std::size_t f = 0; f < op.factors.size(); ++f)
        if (marked[f])
          op.factors[f].size = scale(op.factors[f].size);
      if (followsBatch(op, segment))
        op.flops = op.flops * ratio;
    }
    for (Tensor &tensor : segment.tensors)
      if (tensor.batchDim >= 0) {
        std::int64_t &size = tensor.shape[at(tensor.batchDim)];
        size = scale(size);
      }
  }
  return scaled;
}

} // namespace mtplan::planner
