//===- pipeline_parts.h - The layers of each virtual stage ------*- C++ -*-===//
//
// Distributes layers over virtual stages. The layers of a model are the repeats
// of its repeated segments, even if pins split these segments. If no segment is
// repeated, every segment is a layer. A pipeline is cut between layers:
// segments before the first layer belong to the first layer, and every other
// segment that is no layer belongs to the layer before it.
//
// The first and the last stage also have the embedding and the head, and have
// different numbers of micro-batches in flight, so they may need fewer layers.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_SPACE_PIPELINE_PARTS_H
#define MTPLAN_PLANNER_SEARCH_SPACE_PIPELINE_PARTS_H

#include <vector>

#include "planner/graph/op_graph.h"

namespace mtplan::planner {

/// Describes consecutive repeats of one segment.
struct RepeatRange {
  int segment = 0;
  int first = 0; ///< the first repeat, counted within the segment
  int count = 1;
  auto operator<=>(const RepeatRange &) const = default;
};
using PipelinePart = std::vector<RepeatRange>; ///< in chain order

int layersOf(const ModelGraph &model);

/// Returns the parts of the model, one per virtual stage.
/// \param layers  the layers of each part, in model order; each >= 1, with the
/// sum layersOf(model). Empty: one part with all layers. The last number may be
/// 0 if segments follow the last layer; the last part then has these segments.
/// \throws std::invalid_argument if the sum differs or a number is too small
std::vector<PipelinePart> pipelineParts(const ModelGraph &model,
                                        const std::vector<int> &layers);

/// Returns the most even distribution of layers over parts. The middle parts
/// get the remainder.
std::vector<int> evenLayers(int layers, int parts);

/// Returns whether the layers divide evenly among all chunks of an interleaved
/// pipeline. The embedding and the head may each count as one more layer.
bool fillsChunks(int layers, int chunks);

/// Returns the cuts of `layers` layers into `stages` stages in which neither
/// the first nor the last stage has more layers than the largest middle stage,
/// and the middle stages share the other layers evenly. With two stages,
/// returns all cuts. The even cut is left out.
std::vector<std::vector<int>> unevenCuts(int layers, int stages);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SPACE_PIPELINE_PARTS_H
