//===- op_graph.cpp - A training step as the planner sees it --------------===//

#include "planner/graph/op_graph.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "planner/graph/layout.h"
#include "planner/index.h"

namespace mtplan::planner {

const char *nameOf(Split split) {
  switch (split) {
  case Split::batch:
    return "batch";
  case Split::sequence:
    return "sequence";
  case Split::column:
    return "column";
  case Split::row:
    return "row";
  case Split::head:
    return "head";
  case Split::vocab:
    return "vocab";
  case Split::expert:
    return "expert";
  case Split::feature:
    return "feature";
  case Split::hidden:
    return "hidden";
  }
  return "?";
}

namespace {

// Returns the samples that the graph was built for, read off its inputs or else
// its first tensor with a batch dimension; 0 if nothing depends on the batch.
std::int64_t samplesOf(const ModelGraph &graph) {
  std::int64_t any = 0;
  for (const SegmentGraph &segment : graph.segments)
    for (const Tensor &tensor : segment.tensors) {
      if (tensor.batchDim < 0)
        continue;
      std::int64_t size =
          tensor.shape[static_cast<std::size_t>(tensor.batchDim)];
      if (tensor.kind == TensorKind::input)
        return size;
      if (any == 0)
        any = size;
    }
  return any;
}

// Marks the factors that run along a batch dimension of some operand or result.
std::vector<bool> batchFactorsOf(const Op &op, const SegmentGraph &segment) {
  std::vector<bool> marked(op.factors.size(), false);
  for (const std::vector<Use> *uses : {&op.operands, &op.results})
    for (const Use &use : *uses) {
      int dim = segment.tensors[static_cast<std::size_t>(use.tensor)].batchDim;
      if (dim < 0)
        continue;
      int factor = use.factors[static_cast<std::size_t>(dim)];
      if (factor >= 0)
        marked[static_cast<std::size_t>(factor)] = true;
    }
  return marked;
}

// Returns whether an operand or result of `op` has a batch dimension.
bool followsBatch(const Op &op, const SegmentGraph &segment) {
  for (const std::vector<Use> *uses : {&op.operands, &op.results})
    for (const Use &use : *uses)
      if (segment.tensors[static_cast<std::size_t>(use.tensor)].batchDim >= 0)
        return true;
  return false;
}

} // namespace

bool isCarriedOut(const SegmentGraph &segment, int tensor) {
  for (std::size_t i = 0; i < segment.carriedIn.size(); ++i)
    if (segment.carriedIn[i] == tensor && i < segment.carriedOut.size() &&
        segment.carriedOut[i] == tensor)
      return true;
  return false;
}

// Expert parameters belong to other ranks than the rest, so their messages are
// separate.
static bool isOfExperts(const Parameter &parameter) {
  return std::ranges::find(parameter.splits, Split::expert) !=
         parameter.splits.end();
}

void shareSegments(ModelGraph &graph) {
  std::vector<bool> seen(graph.parameters.size(), false);
  for (const SegmentGraph &segment : graph.segments) {
    std::vector<Parameter *> own;
    std::array<double, 2> all{}; // of the others, of experts
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

// Batch dimensions are scaled rather than set: an expert's capacity counts
// tokens, several per sample. A capacity that does not divide is rounded up.
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
        auto dim = static_cast<std::size_t>(tensor.batchDim);
        tensor.shape[dim] = scale(tensor.shape[dim]);
      }
  }
  return scaled;
}

} // namespace mtplan::planner
