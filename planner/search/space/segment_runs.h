//===- segment_runs.h - Recomputation and tiles of a segment ----*- C++ -*-===//
//
// Finds the operators that backward recomputes, and the tiles of each weight.
//
// Memory-centric tiling (Rajbhandari et al. 2021, ZeRO-Infinity, section 5.1.3)
// executes a product by a weight that is sharded over replicas as several
// products in sequence. Each product all-gathers a tile of the weight and frees
// the tile afterwards. Backward also computes and reduces the weight's gradient
// tile by tile, so that memory holds one full tile at a time. Activations are
// not tiled. A configuration sets the number of tiles of the largest weight;
// every other weight has the fewest tiles that are no larger than those of the
// largest weight.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_SPACE_SEGMENT_RUNS_H
#define MTPLAN_PLANNER_SEARCH_SPACE_SEGMENT_RUNS_H

#include <vector>

#include "planner/cost/op_run.h"
#include "planner/search/space/setting.h"

namespace mtplan::planner {

/// Returns, per operator, whether backward recomputes the operator. Full
/// recomputation repeats all forward operators or, if the software stops early,
/// all forward operators up to the last one whose result backward reads.
/// Selective recomputation follows the software's rule. Segments that are not
/// layers recompute nothing.
std::vector<bool> recomputedOps(const SegmentGraph &segment,
                                Recompute recompute, const Software &software);

/// Returns whether forward saves every tensor that backward reads. This holds
/// if nothing is recomputed, or only values inside attention.
bool keepsAllTensors(Recompute recompute, const Software &software);

/// Returns, per tensor, whether backward repeats its forward layout changes,
/// because backward recomputes the tensor or, in full recomputation, starts
/// from the tensor. Weights are excluded: recomputation uses the weights that
/// are all-gathered for backward.
std::vector<bool> recomputedTensors(const SegmentGraph &segment,
                                    Recompute recompute,
                                    const Software &software);

/// Returns the number of tiles of each parameter. The number is 1 if an
/// operator other than a product reads the parameter.
std::vector<int> tilesOfParameters(const ModelGraph &model,
                                   const Setting &setting);

/// Returns the number of tiles of each tensor of `segment`. A weight has as
/// many tiles as its parameter, and so has the weight's gradient if a product
/// computes the gradient. All other tensors have 1 tile.
std::vector<int> tilesOfTensors(const ModelGraph &model,
                                const SegmentGraph &segment,
                                const Setting &setting);

/// Returns the largest tile's share of one rank's shard, if the shard is cut
/// into `tiles` along the tensor's longest dimension.
double largestTileOf(const std::vector<std::int64_t> &shape,
                     const Layout &layout, const Mesh &mesh, int tiles);

/// Returns the run of each operator of the segment, including its tiles.
std::vector<OpRun> opRunsOf(const ModelGraph &model,
                            const SegmentGraph &segment,
                            const Setting &setting);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SPACE_SEGMENT_RUNS_H
