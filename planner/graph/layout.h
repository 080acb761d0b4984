//===- layout.h - A tensor's layout over a mesh -----------------*- C++ -*-===//
//
// Every collective is a mismatch between two layouts. Here are the planner's
// meshes, layouts, and the steps that turn one layout into another;
// planner/cost prices the same steps that passes/communicate emits.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_GRAPH_LAYOUT_H
#define MTPLAN_PLANNER_GRAPH_LAYOUT_H

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace mtplan::planner {

struct MeshAxis {
  std::string name; ///< "dp", "tp"
  int size = 1;     ///< ranks, >= 1
};

/// The difference between the ranks along an axis. The axis's name gives it.
enum class AxisRole : std::uint8_t {
  data,    ///< "dp", and "zero": those that share one copy of the state
  expert,  ///< "ep": as data, but in experts they hold different ones
  context, ///< "cp": positions
  tensor,  ///< "tp", and any other: whatever the operators choose
};
AxisRole roleOf(const MeshAxis &axis);

/// Named axes over ranks, major first: the last axis is innermost, so that its
/// ranks are neighbours on the fastest link. rank = ((i0 * n1) + i1) * n2 ...
struct Mesh {
  std::vector<MeshAxis> axes;

  int ranks() const;
  /// Returns the index of the axis called `name`, or -1.
  int find(const std::string &name) const;
  /// Returns the distance in ranks between neighbours along `axis`.
  int stride(int axis) const;
};

enum class Reduction : std::uint8_t { sum, max };

/// Says which mesh axes split which dimension, and over which axes the value is
/// partial: every rank holds a term of it. An axis appears at most once.
struct Layout {
  std::vector<std::vector<int>> dims;   ///< per dimension: axes, major first
  std::vector<int> partial;             ///< ascending
  Reduction reduction = Reduction::sum; ///< meaningful if partial is not empty

  /// Returns the replicated layout of a tensor of `rank` dimensions.
  static Layout replicated(std::size_t rank);

  auto operator<=>(const Layout &) const = default;
};

/// A layout's placement on one axis: kReplicated, kPartial, or the dimension
/// that the axis splits.
inline constexpr int kReplicated = -1;
inline constexpr int kPartial = -2;
int placementOf(const Layout &layout, int axis);

/// Returns `layout` with a new placement of `axis`: kReplicated, kPartial or a
/// dimension. Axes of one dimension are kept ascending, so that the axis is
/// minor-most unless a larger index follows.
Layout withPlacement(Layout layout, int axis, int placement,
                     Reduction reduction = Reduction::sum);

/// Returns the shape of one rank's shard; of a dimension that does not divide,
/// the largest shard, to which the others are padded.
std::vector<std::int64_t> localShape(const std::vector<std::int64_t> &shape,
                                     const Layout &layout, const Mesh &mesh);

/// Returns whether every split dimension divides by the axes that split it.
bool divides(const std::vector<std::int64_t> &shape, const Layout &layout,
             const Mesh &mesh);

/// Returns text like "[b=dp, -, tp]", as a PartitionSpec, with
/// partial={tp:sum}.
std::string toString(const Layout &layout, const Mesh &mesh);

enum class StepKind : std::uint8_t {
  allReduce,     ///< partial -> replicated
  reduceScatter, ///< partial -> split `toDim`
  allGather,     ///< split `fromDim` -> replicated
  allToAll,      ///< split `fromDim` -> split `toDim`
  slice,         ///< replicated -> split `toDim`; local
  maskToRoot,    ///< replicated -> partial: rank 0 of the axis keeps it; local
};

bool isCollective(StepKind kind);
const char *nameOf(StepKind kind); ///< "all_reduce", ..., "slice", "mask"

struct ReshardStep {
  StepKind kind;
  int axis = 0;
  int fromDim = -1; ///< allGather, allToAll
  int toDim = -1;   ///< reduceScatter, allToAll, slice
  Reduction reduction = Reduction::sum;
  Layout result; ///< layout after this step
};

/// Returns the steps that turn `from` into `to`, axis by axis. Steps that
/// shrink the local shard come first, then those that keep its size, then those
/// that grow it, as far as nesting allows: only the minor-most axis of a
/// dimension can leave it, and an axis joins as the minor-most. Within a class
/// the last axis goes first. Split -> partial goes through replicated.
std::vector<ReshardStep> reshardSteps(const Layout &from, const Layout &to);

/// Calls `visit(step, local shape before it)` for each step of a layout change.
template <typename Visit>
void forEachStep(const Layout &from, const Layout &to,
                 const std::vector<std::int64_t> &shape, const Mesh &mesh,
                 Visit visit) {
  std::vector<std::int64_t> local = localShape(shape, from, mesh);
  for (const ReshardStep &step : reshardSteps(from, to)) {
    visit(step, local);
    local = localShape(shape, step.result, mesh);
  }
}

/// Returns the number of elements of a shape, as a double, since it may exceed
/// 64 bits.
inline double elementsOf(const std::vector<std::int64_t> &shape) {
  double product = 1.0;
  for (const std::int64_t size : shape)
    product *= static_cast<double>(size);
  return product;
}

/// Returns the bytes of a tensor of a shape.
inline double tensorBytes(const std::vector<std::int64_t> &shape,
                          double elementBytes) {
  double bytes = elementBytes;
  for (const std::int64_t size : shape)
    bytes *= static_cast<double>(size);
  return bytes;
}

/// Divides the ranks of the mesh into groups that differ along `axes` alone, so
/// that every rank is in one group. Members ascend, groups ascend by their
/// first member.
/// \param axes  ascending, without repeats; if empty, every rank is on its own
std::vector<std::vector<int>> groupsOf(const Mesh &mesh,
                                       const std::vector<int> &axes);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_GRAPH_LAYOUT_H
