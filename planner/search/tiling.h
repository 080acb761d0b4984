//===- tiling.h - Weights that are used a tile at a time --------*- C++ -*-===//
//
// Memory-centric tiling (Rajbhandari et al. 2021, ZeRO-Infinity,
// section 5.1.3): a product by a weight that is stored split over the replicas
// is executed as several, one after another, each with a tile of the weight,
// which is gathered for it and let go of; backward makes and reduces the
// weight's gradient tile by tile too. So only a tile is there whole.
// Activations stay as they are.
//
// Candidates say into how many tiles the largest weight goes; every other is
// cut as often as it takes for none of its tiles to be larger than those.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_TILING_H
#define MTPLAN_PLANNER_SEARCH_TILING_H

#include <vector>

#include "planner/cost/op_run.h"
#include "planner/search/setting.h"

namespace mtplan::planner {

/// By parameter: tiles of those that are cut, which products alone read;
/// else 1.
std::vector<int> tilesOfParameters(const ModelGraph &model,
                                   const Setting &setting);

/// By tensor of `segment`: tiles of weights, and of the gradients that products
/// make of them; else 1.
std::vector<int> tilesOfTensors(const ModelGraph &model,
                                const SegmentGraph &segment,
                                const Setting &setting);

/// Of one rank's piece of a tensor that goes in `tiles`: what the largest of
/// them has of it. A piece has no more tiles than its longest side is long.
double largestTileOf(const std::vector<std::int64_t> &shape,
                     const Layout &layout, const Mesh &mesh, int tiles);

/// How the segment's operators run under `setting`.
std::vector<OpRun> opRunsOf(const ModelGraph &model,
                            const SegmentGraph &segment,
                            const Setting &setting);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_TILING_H
