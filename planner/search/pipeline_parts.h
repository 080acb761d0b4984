//===- pipeline_parts.h - Which part of the model a stage holds -*- C++ -*-===//
//
// The layers of a model are the copies of its repeated segments, also where
// pins cut them apart (all segments, if none is repeated). A pipeline cuts
// between layers; what stands before the first layer goes with it, what stands
// after a layer goes with that one. No layer is ever lost: the numbers of
// layers add up, or there are no parts.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_PIPELINE_PARTS_H
#define MTPLAN_PLANNER_SEARCH_PIPELINE_PARTS_H

#include <vector>

#include "planner/graph/op_graph.h"

namespace mtplan::planner {

/// Consecutive copies of one segment.
struct CopyRange {
  int segment = 0;
  int first = 0; ///< of the copies, counted from the segment's first
  int count = 1;
  auto operator<=>(const CopyRange &) const = default;
};
using PipelinePart = std::vector<CopyRange>; ///< in chain order

int layersOf(const ModelGraph &model);

/// \param layers  of each part, in model order; each >= 1, with the sum
///                layersOf(model). Empty: one part with everything.
/// \throws std::invalid_argument if they do not add up
std::vector<PipelinePart> pipelineParts(const ModelGraph &model,
                                        const std::vector<int> &layers);

/// As even as possible; where it does not divide, the first and the last part,
/// which hold embedding and head besides, get fewer.
std::vector<int> evenLayers(int layers, int parts);

/// Whether evenLayers gives every chunk of an interleaved pipeline as many, but
/// that one of the ends, or both, may have one less: what they hold besides
/// stands for a layer.
bool fillsChunks(int layers, int chunks);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_PIPELINE_PARTS_H
