//===- segment_runs.h - How a setting runs a segment ------------*- C++ -*-===//
//
// The operators that backward recomputes, and the weights that are used a tile
// at a time.
//
// Memory-centric tiling (Rajbhandari et al. 2021, ZeRO-Infinity, section 5.1.3)
// executes a product by a weight that is stored split over the replicas as
// several products in sequence. Each gathers a tile of the weight and frees it
// afterwards; backward computes and reduces the weight's gradient tile by tile
// too, so that only a tile is ever gathered. Activations are not tiled. A
// configuration says how many tiles the largest weight has. Every other weight
// is cut as often as it takes to have no larger tiles.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_SPACE_SEGMENT_RUNS_H
#define MTPLAN_PLANNER_SEARCH_SPACE_SEGMENT_RUNS_H

#include <vector>

#include "planner/cost/op_run.h"
#include "planner/search/space/setting.h"

namespace mtplan::planner {

/// Returns by operator of a repeated segment whether backward runs it again.
/// Full recomputation repeats all forward operators or, where the software
/// stops early, those up to the last whose result backward reads; selective
/// recomputation follows the software's rule. A segment that occurs once
/// recomputes nothing.
std::vector<bool> recomputedOps(const SegmentGraph &segment,
                                Recompute recompute, const Software &software);

/// Returns whether backward finds every tensor that it reads where forward left
/// it: nothing is recomputed, or only attention's private results are.
bool keepsAllTensors(Recompute recompute, const Software &software);

/// Returns by tensor whether its forward layout change is repeated, because
/// backward recomputes the tensor or, in full recomputation, starts from it.
/// Weights are excluded: gathered for backward, they serve the recomputation as
/// well.
std::vector<bool> recomputedTensors(const SegmentGraph &segment,
                                    Recompute recompute,
                                    const Software &software);

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

#endif // MTPLAN_PLANNER_SEARCH_SPACE_SEGMENT_RUNS_H
