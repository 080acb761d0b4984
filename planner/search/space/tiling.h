//===- tiling.h - Weights that are used a tile at a time --------*- C++ -*-===//
//
// Memory-centric tiling (Rajbhandari et al. 2021, ZeRO-Infinity, section
// 5.1.3): a product by a weight that is stored split over the replicas is
// executed as several products in sequence. Each gathers a tile of the weight
// and frees it afterwards; backward computes and reduces the weight's gradient
// tile by tile too, so that only a tile is ever gathered. Activations are not
// tiled.
//
// A configuration says how many tiles the largest weight has. Every other
// weight is cut as often as it takes to have no larger tiles.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_SPACE_TILING_H
#define MTPLAN_PLANNER_SEARCH_SPACE_TILING_H

#include <vector>

#include "planner/cost/op_run.h"
#include "planner/search/space/setting.h"

namespace mtplan::planner {

/// Returns by parameter the tiles of those that are cut, which products alone
/// read; else 1.
std::vector<int> tilesOfParameters(const ModelGraph &model,
                                   const Setting &setting);

/// Returns by tensor of `segment` the tiles of weights, and of the gradients
/// that products compute for them; else 1.
std::vector<int> tilesOfTensors(const ModelGraph &model,
                                const SegmentGraph &segment,
                                const Setting &setting);

/// Returns the largest tile's share of one rank's shard that is cut into
/// `tiles`. A shard has no more tiles than its longest dimension is long.
double largestTileOf(const std::vector<std::int64_t> &shape,
                     const Layout &layout, const Mesh &mesh, int tiles);

/// Returns how the segment's operators run under `setting`.
std::vector<OpRun> opRunsOf(const ModelGraph &model,
                            const SegmentGraph &segment,
                            const Setting &setting);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SPACE_TILING_H
