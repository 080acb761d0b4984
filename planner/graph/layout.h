//===- layout.h - A tensor's layout over a mesh -----------------*- C++ -*-===//
//
// Defines meshes, layouts, and the steps that change one layout into another.
// The planner prices the same steps that passes/communicate emits.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_GRAPH_LAYOUT_H
#define MTPLAN_PLANNER_GRAPH_LAYOUT_H

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mtplan::planner {

struct MeshAxis {
  std::string name; ///< "dp", "tp"
  int size = 1;     ///< number of ranks, >= 1
};

/// Says which kind of parallelism an axis serves; the name of the axis
/// determines the role.
enum class AxisRole : std::uint8_t {
  data,    ///< "dp", and "zero" in hybrid sharding
  expert,  ///< "ep": data-parallel ranks that hold different experts
  context, ///< "cp": ranks that hold different positions
  tensor,  ///< "tp" and all other names: each operator picks a factor
};
AxisRole roleOf(const MeshAxis &axis);

/// Arranges the ranks along named axes, major first: the ranks of the last axis
/// are neighbours on the fastest link. On axes of the sizes n0, n1 and n2, the
/// rank with the indices i0, i1 and i2 is (i0 * n1 + i1) * n2 + i2.
struct Mesh {
  std::vector<MeshAxis> axes;

  int ranks() const;
  /// Returns the index of the axis called `name`, or -1.
  int find(const std::string &name) const;
  /// Returns the distance in ranks between neighbours along `axis`.
  int stride(int axis) const;
};

enum class Reduction : std::uint8_t { sum, max };

/// Lists the mesh axes that split each dimension of a tensor, and the axes over
/// which the value is partial. Over a partial axis, the tensor is the reduction
/// of the values of all ranks. An axis appears at most once.
struct Layout {
  std::vector<std::vector<int>> dims;   ///< axes per dimension, major first
  std::vector<int> partial;             ///< axes, ascending
  Reduction reduction = Reduction::sum; ///< meaningful if partial is not empty

  /// Returns the replicated layout of a tensor of `rank` dimensions.
  static Layout replicated(std::size_t rank);

  auto operator<=>(const Layout &) const = default;
};

/// An axis that splits no dimension has one of these placements.
inline constexpr int kReplicated = -1;
inline constexpr int kPartial = -2;
/// Returns kReplicated, kPartial, or the dimension that `axis` splits.
int placementOf(const Layout &layout, int axis);

/// Returns `layout` with a new placement of `axis`: kReplicated, kPartial or a
/// dimension. `axis` becomes the minor-most axis of that dimension.
Layout withPlacement(Layout layout, int axis, int placement,
                     Reduction reduction = Reduction::sum);

/// Returns the shape of one rank's shard. If a dimension is no multiple of its
/// number of shards, all shards are padded to the size of the largest.
std::vector<std::int64_t> localShape(const std::vector<std::int64_t> &shape,
                                     const Layout &layout, const Mesh &mesh);
/// Returns the number of elements of localShape(), which may exceed 64 bits.
double localElements(const std::vector<std::int64_t> &shape,
                     const Layout &layout, const Mesh &mesh);

/// Returns whether every dimension is a multiple of its number of shards.
bool divides(const std::vector<std::int64_t> &shape, const Layout &layout,
             const Mesh &mesh);

/// Returns text like "[dp, -, tp] partial={cp:sum}".
std::string toString(const Layout &layout, const Mesh &mesh);

enum class StepKind : std::uint8_t {
  allReduce,     ///< partial -> replicated
  reduceScatter, ///< partial -> split `toDim`
  allGather,     ///< split `fromDim` -> replicated
  allToAll,      ///< split `fromDim` -> split `toDim`
  slice,         ///< replicated -> split `toDim`
  maskToRoot,    ///< replicated -> partial: all but the first rank hold zeros
};

bool isCollective(StepKind kind);  ///< whether the step communicates
const char *nameOf(StepKind kind); ///< "all_reduce", ..., "slice", "mask"

struct StepMove {
  StepKind kind;
  int axis = 0;
};

struct ReshardStep : StepMove {
  int fromDim = -1; ///< set for allGather, allToAll; else -1
  int toDim = -1;   ///< set for reduceScatter, allToAll, slice; else -1
  Reduction reduction = Reduction::sum;
  Layout result; ///< layout after the step
};

/// Returns the steps that change `from` into `to`, axis by axis. As far as
/// nesting allows, steps that shrink the local shard come first, then steps
/// that keep its size, then steps that grow the shard. Nesting means that only
/// the minor-most axis of a dimension can be added or removed. Among steps of
/// the same class, the step of the last axis comes first. A change from split
/// to partial is split -> replicated -> partial.
std::vector<ReshardStep> reshardSteps(const Layout &from, const Layout &to);

/// Holds the steps of a layout change that moves only one axis. That axis is
/// the minor-most axis of every dimension that it splits.
struct MovesOfOneAxis {
  int count = 0;
  std::array<StepMove, 2> moves{};
};

/// Returns reshardSteps(from, to) without the layouts if only one axis moves,
/// else nothing. The search prices millions of such changes.
std::optional<MovesOfOneAxis> movesOfOneAxis(const Layout &from,
                                             const Layout &to);

template <typename Visit>
void forEachMove(const Layout &from, const Layout &to, Visit visit) {
  if (const std::optional<MovesOfOneAxis> known = movesOfOneAxis(from, to)) {
    for (int i = 0; i < known->count; ++i)
      visit(known->moves[static_cast<std::size_t>(i)]);
    return;
  }
  for (const ReshardStep &step : reshardSteps(from, to))
    visit(step);
}

/// Calls `visit(move, elements)` for each step of a layout change, where
/// `elements` is the size of the shard before the step.
template <typename Visit>
void forEachStep(const Layout &from, const Layout &to,
                 const std::vector<std::int64_t> &shape, const Mesh &mesh,
                 Visit visit) {
  if (const std::optional<MovesOfOneAxis> known = movesOfOneAxis(from, to)) {
    if (known->count > 0)
      visit(known->moves[0], localElements(shape, from, mesh));
    if (known->count > 1) // the value is replicated between the two steps
      visit(known->moves[1], localElements(shape, to, mesh));
    return;
  }
  double elements = localElements(shape, from, mesh);
  for (const ReshardStep &step : reshardSteps(from, to)) {
    visit(step, elements);
    elements = localElements(shape, step.result, mesh);
  }
}

/// Returns the number of elements of a shape, which may exceed 64 bits.
inline double elementsOf(const std::vector<std::int64_t> &shape) {
  double product = 1.0;
  for (const std::int64_t size : shape)
    product *= static_cast<double>(size);
  return product;
}

inline double tensorBytes(const std::vector<std::int64_t> &shape,
                          double elementBytes) {
  double bytes = elementBytes;
  for (const std::int64_t size : shape)
    bytes *= static_cast<double>(size);
  return bytes;
}

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_GRAPH_LAYOUT_H
