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
// other weights have as many tiles as needed for tiles that are no larger.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_SPACE_SEGMENT_RUNS_H
#define MTPLAN_PLANNER_SEARCH_SPACE_SEGMENT_RUNS_H

#include <vector>

#include "planner/cost/op_run.h"
#include "planner/search/space/setting.h"

namespace mtplan::planner {

/// Returns, per operator, whether backward recomputes it. Full recomputation
/// repeats all forward operators or, if the software stops early, the operators
/// up to the last whose result backward reads; selective recomputation follows
/// the software's rule. Segments that are not layers recompute nothing.
std::vector<bool> recomputedOps(const SegmentGraph &segment,
                                Recompute recompute, const Software &software);

/// Returns whether forward saves every tensor that backward reads: nothing is
/// recomputed, or only values inside attention.
bool keepsAllTensors(Recompute recompute, const Software &software);

/// Returns, per tensor, whether backward repeats its forward layout changes,
/// because backward recomputes the tensor or, in full recomputation, starts
/// from the tensor. Weights are excluded: recomputation uses the weights that
/// are all-gathered for backward.
std::vector<bool> recomputedTensors(const SegmentGraph &segment,
                                    Recompute recompute,
                                    const Software &software);

/// Returns the number of tiles of each parameter; 1 if an operator that is no
/// product reads the parameter.
std::vector<int> tilesOfParameters(const ModelGraph &model,
                                   const Setting &setting);

/// Returns the number of tiles of each tensor of `segment`. A weight has the
/// number of its parameter, and so has its gradient if a product computes it;
/// all other tensors have 1.
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
