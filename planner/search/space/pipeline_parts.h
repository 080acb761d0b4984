//===- pipeline_parts.h - The layers of each virtual stage ------*- C++ -*-===//
//
// The layers of a model are the repeats of its repeated segments, also where
// pins split them (all segments, if none is repeated). A pipeline cuts between
// layers: the segments before the first layer go with it, and those after a
// layer go with that layer. The numbers of layers must add up to the model's.
//
// The ends of a pipeline also hold the embedding and the head, and have other
// numbers of micro-batches in flight than its middle. They may be better off
// with fewer layers; the middle stages share the rest evenly.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_SPACE_PIPELINE_PARTS_H
#define MTPLAN_PLANNER_SEARCH_SPACE_PIPELINE_PARTS_H

#include <vector>

#include "planner/graph/op_graph.h"

namespace mtplan::planner {

/// Consecutive repeats of one segment.
struct RepeatRange {
  int segment = 0;
  int first = 0; ///< the first repeat, counted within the segment
  int count = 1;
  auto operator<=>(const RepeatRange &) const = default;
};
using PipelinePart = std::vector<RepeatRange>; ///< in chain order

int layersOf(const ModelGraph &model);

/// Returns the parts of the model, one per virtual stage.
/// \param layers  of each part, in model order; each >= 1, with the sum
/// layersOf(model). Empty: one part with everything.
/// \throws std::invalid_argument if they do not add up
std::vector<PipelinePart> pipelineParts(const ModelGraph &model,
                                        const std::vector<int> &layers);

/// Returns the most even layout. A remainder is missing at the first and the
/// last part, which hold embedding and head as well.
std::vector<int> evenLayers(int layers, int parts);

/// Returns whether evenLayers gives every chunk of an interleaved pipeline the
/// same number, but for one layer less at an end, where embedding or head stand
/// for a layer.
bool fillsChunks(int layers, int chunks);

/// Returns all cuts of `layers` layers into `stages` stages in which neither
/// end holds more than a middle stage (with two stages: all cuts), without the
/// even one.
std::vector<std::vector<int>> unevenCuts(int layers, int stages);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SPACE_PIPELINE_PARTS_H
