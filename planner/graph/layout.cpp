//===- layout.cpp - A tensor's layout over a mesh -------------------------===//
//
// If several axes split one dimension, the major axis splits first. Therefore
// only the minor-most axis of a dimension can be all-gathered, and an axis can
// only be added as the minor-most axis. An axis that blocks another axis is
// moved first.
//
//===----------------------------------------------------------------------===//

#include "planner/graph/layout.h"

#include <algorithm>
#include <cassert>

#include "planner/integers.h"

namespace mtplan::planner {

AxisRole roleOf(const MeshAxis &axis) {
  if (axis.name == "dp" || axis.name == "zero")
    return AxisRole::data;
  if (axis.name == "ep")
    return AxisRole::expert;
  return axis.name == "cp" ? AxisRole::context : AxisRole::tensor;
}

int Mesh::ranks() const {
  int product = 1;
  for (const MeshAxis &axis : axes)
    product *= axis.size;
  return product;
}

int Mesh::find(const std::string &name) const {
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (axes[i].name == name)
      return static_cast<int>(i);
  return -1;
}

int Mesh::stride(int axis) const {
  int product = 1;
  for (std::size_t i = at(axis) + 1; i < axes.size(); ++i)
    product *= axes[i].size;
  return product;
}

Layout Layout::replicated(std::size_t rank) {
  Layout layout;
  layout.dims.resize(rank);
  return layout;
}

int placementOf(const Layout &layout, int axis) {
  for (std::size_t d = 0; d < layout.dims.size(); ++d)
    for (int used : layout.dims[d])
      if (used == axis)
        return static_cast<int>(d);
  for (int used : layout.partial)
    if (used == axis)
      return kPartial;
  return kReplicated;
}

Layout withPlacement(Layout layout, int axis, int placement,
                     Reduction reduction) {
  assert(placement >= kPartial &&
         placement < static_cast<int>(layout.dims.size()));
  for (std::vector<int> &dim : layout.dims)
    std::erase(dim, axis);
  std::erase(layout.partial, axis);
  if (placement == kPartial) {
    assert((layout.partial.empty() || layout.reduction == reduction) &&
           "one value cannot be a sum over one axis and a max over another");
    layout.reduction = reduction;
    layout.partial.insert(std::ranges::upper_bound(layout.partial, axis), axis);
  } else if (placement >= 0) {
    layout.dims[at(placement)].push_back(axis);
  }
  // A layout without partial axes has a fixed reduction, so that operator==
  // ignores the unused member.
  if (layout.partial.empty())
    layout.reduction = Reduction::sum;
  return layout;
}

static std::int64_t localSize(std::int64_t size, const std::vector<int> &axes,
                              const Mesh &mesh) {
  for (int axis : axes) {
    const std::int64_t ranks = mesh.axes[at(axis)].size;
    size = (size + ranks - 1) / ranks;
  }
  return size;
}

std::vector<std::int64_t> localShape(const std::vector<std::int64_t> &shape,
                                     const Layout &layout, const Mesh &mesh) {
  assert(shape.size() == layout.dims.size());
  std::vector<std::int64_t> local = shape;
  for (std::size_t d = 0; d < layout.dims.size(); ++d)
    local[d] = localSize(shape[d], layout.dims[d], mesh);
  return local;
}

double localElements(const std::vector<std::int64_t> &shape,
                     const Layout &layout, const Mesh &mesh) {
  assert(shape.size() == layout.dims.size());
  double elements = 1.0;
  for (std::size_t d = 0; d < layout.dims.size(); ++d)
    elements *= static_cast<double>(localSize(shape[d], layout.dims[d], mesh));
  return elements;
}

bool divides(const std::vector<std::int64_t> &shape, const Layout &layout,
             const Mesh &mesh) {
  assert(shape.size() == layout.dims.size());
  for (std::size_t d = 0; d < layout.dims.size(); ++d) {
    std::int64_t shards = 1;
    for (int axis : layout.dims[d])
      shards *= mesh.axes[at(axis)].size;
    if (shape[d] % shards != 0)
      return false;
  }
  return true;
}

std::string toString(const Layout &layout, const Mesh &mesh) {
  std::string text = "[";
  for (std::size_t d = 0; d < layout.dims.size(); ++d) {
    if (d > 0)
      text += ", ";
    if (layout.dims[d].empty())
      text += '-';
    for (std::size_t i = 0; i < layout.dims[d].size(); ++i) {
      if (i > 0)
        text += '+';
      text += mesh.axes[at(layout.dims[d][i])].name;
    }
  }
  text += ']';
  if (layout.partial.empty())
    return text;
  text += " partial={";
  for (std::size_t i = 0; i < layout.partial.size(); ++i) {
    if (i > 0)
      text += ", ";
    text += mesh.axes[at(layout.partial[i])].name;
    text += layout.reduction == Reduction::sum ? ":sum" : ":max";
  }
  return text + '}';
}

bool isCollective(StepKind kind) {
  return kind != StepKind::slice && kind != StepKind::maskToRoot;
}

const char *nameOf(StepKind kind) {
  constexpr const char *kNames[] = {"all_reduce", "reduce_scatter",
                                    "all_gather", "all_to_all",
                                    "slice",      "mask"};
  return kNames[static_cast<std::size_t>(kind)];
}

namespace {

// Lists the classes of steps, best first, by their effect on the local shard. A
// growToUnblock step all-gathers an axis that a later step must assign to a
// dimension again.
enum Class : int { shrink, keep, grow, growToUnblock, impossible };

Class classOf(StepKind kind) {
  switch (kind) {
  case StepKind::reduceScatter:
  case StepKind::slice:
    return shrink;
  case StepKind::allReduce:
  case StepKind::allToAll:
  case StepKind::maskToRoot:
    return keep;
  case StepKind::allGather:
    return grow;
  }
  return impossible;
}

// Returns whether `axis` never moves again. If `axis` splits a dimension, all
// more major axes of the dimension must have their final placement, too.
bool isSettled(const Layout &now, const Layout &to, int axis) {
  int place = placementOf(now, axis);
  if (place != placementOf(to, axis))
    return false;
  if (place == kPartial)
    return now.reduction == to.reduction;
  if (place == kReplicated)
    return true;
  const std::vector<int> &have = now.dims[at(place)];
  const std::vector<int> &want = to.dims[at(place)];
  // Both lists contain `axis`, so the loop ends within both.
  std::size_t i = 0;
  while (have[i] == want[i] && have[i] != axis)
    ++i;
  return have[i] == want[i];
}

// Returns whether `axis` is the next axis that dimension `dim` needs.
bool canMerge(const Layout &now, const Layout &to, int axis, int dim) {
  const std::vector<int> &have = now.dims[at(dim)];
  const std::vector<int> &want = to.dims[at(dim)];
  return have.size() < want.size() && want[have.size()] == axis &&
         std::equal(have.begin(), have.end(), want.begin());
}

struct Choice {
  Class rank = impossible;
  StepKind kind{};
  int axis = 0, from = kReplicated, place = kReplicated;
};

Choice choiceFor(const Layout &now, const Layout &to, int axis) {
  Choice choice;
  const int from = placementOf(now, axis), target = placementOf(to, axis);
  auto take = [&](StepKind kind, int place) {
    choice = {classOf(kind), kind, axis, from, place};
  };
  bool merges = target >= 0 && canMerge(now, to, axis, target);
  if (from == kReplicated) {
    if (merges)
      take(StepKind::slice, target);
    else if (target == kPartial &&
             (now.partial.empty() || now.reduction == to.reduction))
      take(StepKind::maskToRoot, kPartial);
  } else if (from == kPartial) {
    if (merges)
      take(StepKind::reduceScatter, target);
    else if (target < 0)
      take(StepKind::allReduce, kReplicated);
  } else if (now.dims[at(from)].back() == axis) {
    if (merges && target != from) {
      take(StepKind::allToAll, target);
    } else {
      take(StepKind::allGather, kReplicated);
      if (target >= 0)
        choice.rank = growToUnblock;
    }
  }
  return choice;
}

} // namespace

// axisBehind() returns these values when it finds no single axis.
static constexpr int kNoAxis = -1, kSeveralAxes = -2;

// Returns the single axis by which one list is longer than the other, or
// `known` if the lists are equal. Returns kSeveralAxes if the lists differ in
// other ways, or if the single axis differs from `known`.
static int axisBehind(const std::vector<int> &a, const std::vector<int> &b,
                      int known) {
  const std::size_t shared = std::min(a.size(), b.size());
  const std::size_t longer = std::max(a.size(), b.size());
  if (longer > shared + 1 ||
      !std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(shared),
                  b.begin()))
    return kSeveralAxes;
  if (longer == shared)
    return known;
  const int axis = a.size() > b.size() ? a.back() : b.back();
  return known == kNoAxis || known == axis ? axis : kSeveralAxes;
}

std::optional<MovesOfOneAxis> movesOfOneAxis(const Layout &from,
                                             const Layout &to) {
  int axis = axisBehind(from.partial, to.partial, kNoAxis);
  int source = kReplicated, target = kReplicated;
  if (axis >= 0)
    (from.partial.size() > to.partial.size() ? source : target) = kPartial;
  for (std::size_t d = 0; axis != kSeveralAxes && d < from.dims.size(); ++d) {
    axis = axisBehind(from.dims[d], to.dims[d], axis);
    if (from.dims[d].size() != to.dims[d].size())
      (from.dims[d].size() > to.dims[d].size() ? source : target) =
          static_cast<int>(d);
  }
  const bool sumsDiffer = !from.partial.empty() && !to.partial.empty() &&
                          from.reduction != to.reduction;
  if (axis == kSeveralAxes || sumsDiffer)
    return std::nullopt;
  auto steps = [&](StepKind kind) {
    return MovesOfOneAxis{1, {{{kind, axis}, {}}}};
  };
  if (source == target)
    return MovesOfOneAxis{};
  if (source == kReplicated)
    return steps(target == kPartial ? StepKind::maskToRoot : StepKind::slice);
  if (source == kPartial)
    return steps(target == kReplicated ? StepKind::allReduce
                                       : StepKind::reduceScatter);
  if (target == kPartial)
    return MovesOfOneAxis{
        2, {{{StepKind::allGather, axis}, {StepKind::maskToRoot, axis}}}};
  return steps(target == kReplicated ? StepKind::allGather
                                     : StepKind::allToAll);
}

// The loop terminates: a settled axis never moves, and each step settles its
// axis or makes it replicated. A step is always possible: if an unsettled axis
// splits a dimension, the minor-most axis of that dimension is unsettled and
// can be all-gathered; otherwise every dimension holds a prefix of its final
// axes, and its next axis can be added.
std::vector<ReshardStep> reshardSteps(const Layout &from, const Layout &to) {
  assert(from.dims.size() == to.dims.size());
  std::vector<ReshardStep> steps;
  if (from == to)
    return steps;
  int axes = 0;
  for (const Layout *layout : {&from, &to}) {
    for (const std::vector<int> &dim : layout->dims)
      for (int axis : dim)
        axes = std::max(axes, axis + 1);
    for (int axis : layout->partial)
      axes = std::max(axes, axis + 1);
  }
  while (true) {
    const Layout &now = steps.empty() ? from : steps.back().result;
    Choice best;
    for (int axis = axes - 1; axis >= 0; --axis) {
      if (isSettled(now, to, axis))
        continue;
      const Choice choice = choiceFor(now, to, axis);
      if (choice.rank < best.rank)
        best = choice;
    }
    if (best.rank == impossible)
      return steps;
    const Reduction reduction =
        best.place == kPartial ? to.reduction : now.reduction;
    steps.push_back({{best.kind, best.axis},
                     std::max(best.from, -1),
                     std::max(best.place, -1),
                     reduction,
                     withPlacement(now, best.axis, best.place, reduction)});
  }
}

} // namespace mtplan::planner
