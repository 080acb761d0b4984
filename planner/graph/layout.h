//===- layout.h - How a tensor lies over a mesh -----------------*- C++ -*-===//
//
// The planner's half of "every collective is a mismatch between two layouts":
// meshes, layouts, and the steps that turn one layout into another. The same
// steps are priced by planner/cost and emitted by passes/communicate.
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

/// What the ranks along an axis differ in. Given by the axis's name.
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
  /// Index of the axis called `name`, or -1.
  int find(const std::string &name) const;
  /// Distance in ranks between neighbours along `axis`.
  int stride(int axis) const;
};

enum class Reduction : std::uint8_t { sum, max };

/// Which mesh axes split which dimension, and over which axes every rank still
/// holds only a term of the value. An axis appears at most once in all.
struct Layout {
  std::vector<std::vector<int>> dims;   ///< per dimension: axes, major first
  std::vector<int> partial;             ///< ascending
  Reduction reduction = Reduction::sum; ///< meaningful if partial is not empty

  /// The layout of a tensor of `rank` dimensions, whole on every rank.
  static Layout whole(std::size_t rank);

  auto operator<=>(const Layout &) const = default;
};

/// How `layout` treats one axis: kWhole, kPartial, or the dimension it splits.
inline constexpr int kWhole = -1;
inline constexpr int kPartial = -2;
int placementOf(const Layout &layout, int axis);

/// `layout` with `axis` placed anew: kWhole, kPartial or a dimension (where it
/// becomes the minor-most of the axes that split that dimension, unless a
/// larger axis index follows: axes of one dimension are kept ascending).
Layout withPlacement(Layout layout, int axis, int placement,
                     Reduction reduction = Reduction::sum);

/// Shape of one rank's piece; of a dimension that does not divide, the largest,
/// which the others are padded to.
std::vector<std::int64_t> localShape(const std::vector<std::int64_t> &shape,
                                     const Layout &layout, const Mesh &mesh);

/// True if every split dimension divides by the axes that split it.
bool divides(const std::vector<std::int64_t> &shape, const Layout &layout,
             const Mesh &mesh);

/// "[b=dp, -, tp]" style text: PartitionSpec-like, with partial={tp:sum}.
std::string toString(const Layout &layout, const Mesh &mesh);

enum class StepKind : std::uint8_t {
  allReduce,     ///< partial -> whole
  reduceScatter, ///< partial -> split `toDim`
  allGather,     ///< split `fromDim` -> whole
  allToAll,      ///< split `fromDim` -> split `toDim`
  slice,         ///< whole -> split `toDim`; local
  maskToRoot,    ///< whole -> partial: rank 0 of the axis keeps it; local
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

/// The steps that turn `from` into `to`, axis by axis. Steps that shrink the
/// local piece come first, then those that keep it, then those that grow it, as
/// far as major-minor nesting lets them: only the minor-most axis of a
/// dimension can leave it, and an axis joins as the minor-most. Within a class
/// the last axis goes first. Split -> partial goes through whole.
std::vector<ReshardStep> reshardSteps(const Layout &from, const Layout &to);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_GRAPH_LAYOUT_H
