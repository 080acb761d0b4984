//===- reshard_prices.cpp - The price of layout changes -------------------===//

#include "planner/search/segment/reshard_prices.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

#include "planner/cost/collective_cost.h"
#include "planner/integers.h"
#include "planner/search/segment/tensor_layouts.h"
#include "planner/solve/factor_graph.h"

namespace mtplan::planner {

Seconds stepTime(const StepMove &step, double elements, double elementBytes,
                 const Mesh &mesh, const Machine &machine) {
  const MeshAxis &axis = mesh.axes[at(step.axis)];
  Bytes payload{elements * elementBytes};
  if (isCollective(step.kind))
    return collectiveTime(step.kind, payload,
                          {axis.size, mesh.stride(step.axis), mesh.ranks()},
                          machine);
  // A step without communication reads and writes the elements that it keeps.
  double kept = step.kind == StepKind::slice ? 1.0 / axis.size : 1.0;
  return 2.0 * kept * payload / machine.device.streamRate();
}

namespace {

// Sums `timeOf(step, elements before the step)` over a layout change.
template <typename TimeOf>
Seconds sumOfSteps(const Layout &from, const Layout &to,
                   const std::vector<std::int64_t> &shape, const Mesh &mesh,
                   TimeOf timeOf) {
  Seconds total;
  forEachStep(from, to, shape, mesh,
              [&](const StepMove &step, double elements) {
                total += timeOf(step, elements);
              });
  return total;
}

// Returns whether `cost` is lower by more than a rounding error. Without this
// margin, a reduce-scatter and an all-gather would replace an all-reduce of
// equal price if their sum rounds down.
bool isCheaper(double cost, double than) { return cost < than * (1 - 1e-12); }

} // namespace

Seconds reshardTime(const Layout &from, const Layout &to,
                    const std::vector<std::int64_t> &shape, double elementBytes,
                    const Mesh &mesh, const Machine &machine) {
  return sumOfSteps(
      from, to, shape, mesh, [&](const StepMove &step, double elements) {
        return stepTime(step, elements, elementBytes, mesh, machine);
      });
}

Seconds stateTime(const StepMove &step, double elements, double elementBytes,
                  const Setting &setting, int tiles, double ofSegment) {
  const Mesh &mesh = setting.mesh;
  const MeshAxis &axis = mesh.axes[at(step.axis)];
  const ParameterTraffic &software = setting.software->parameters;
  if (!isCollective(step.kind) || roleOf(axis) == AxisRole::tensor)
    return stepTime(step, elements, elementBytes, mesh, *setting.machine);
  bool gathers = step.kind == StepKind::allGather;
  Bytes payload{elements * elementBytes};
  if (gathers && setting.precision == Precision::fp8)
    payload = payload * software.gatheredFp8;
  if (ofSegment < 1.0 &&
      !groupsMessages(*setting.software, setting.machine->device))
    ofSegment = 1.0;
  double parts = gathers ? axis.size : 1.0;
  Group group{axis.size, mesh.stride(step.axis), mesh.ranks()};
  auto sentIn = [&](Bytes message) -> Seconds {
    if (message.value == 0)
      return {};
    return collectiveTime(step.kind, message, group, *setting.machine) *
           (payload / message);
  };
  double passes = step.kind == StepKind::allReduce ? 2.0 : 1.0;
  Seconds together =
      software.flatRing.value > 0
          ? passes * parts * payload / software.flatRing
          : sentIn(std::max(payload / ofSegment, software.bucket / parts));
  // Each tile is one message, which is never cheaper than an equal share of a
  // bucket.
  return tiles == 1 ? together : std::max(together, sentIn(payload / tiles));
}

Seconds stateReshardTime(const Layout &from, const Layout &to,
                         const std::vector<std::int64_t> &shape,
                         double elementBytes, const Setting &setting,
                         double ofSegment) {
  return sumOfSteps(from, to, shape, setting.mesh,
                    [&](const StepMove &step, double elements) {
                      return stateTime(step, elements, elementBytes, setting, 1,
                                       ofSegment);
                    });
}

Seconds exposedTime(const StepMove &step, double elements, double elementBytes,
                    Phase phase, const Setting &setting) {
  const Mesh &mesh = setting.mesh;
  const MeshAxis &axis = mesh.axes[at(step.axis)];
  Seconds time = stepTime(step, elements, elementBytes, mesh, *setting.machine);
  if (!isCollective(step.kind) || roleOf(axis) != AxisRole::tensor)
    return time;
  const TensorTraffic &tensor = setting.software->tensor;
  const bool spansNodes =
      axis.size * mesh.stride(step.axis) > setting.machine->devicesPerNode;
  time = time * (spansNodes ? tensor.slowdownAcrossNodes : tensor.slowdown);
  double gathered = step.kind == StepKind::allGather ? axis.size : 1.0;
  Bytes gatheredBytes{elements * gathered * elementBytes};
  time +=
      2.0 * tensor.copies * gatheredBytes / setting.machine->device.passRate();
  if (setting.precision == Precision::fp8)
    time = time * tensor.fp8;
  return time * (1.0 - (phase == Phase::forward ? tensor.hiddenForward
                                                : tensor.hiddenBackward));
}

double localBytes(const std::vector<std::int64_t> &shape, const Layout &layout,
                  double elementBytes, const Mesh &mesh) {
  double bytes = elementsOf(shape) * elementBytes;
  for (const std::vector<int> &dim : layout.dims)
    for (int axis : dim)
      bytes /= mesh.axes[at(axis)].size;
  return bytes;
}

int LayoutDomain::find(const Layout &layout) const {
  auto found = std::ranges::find(layouts, layout);
  return found == layouts.end() ? -1
                                : static_cast<int>(found - layouts.begin());
}

int LayoutDomain::add(const Layout &layout) {
  int index = find(layout);
  if (index >= 0)
    return index;
  layouts.push_back(layout);
  return size() - 1;
}

void LayoutDomain::price(const std::vector<std::int64_t> &shape,
                         double elementBytes, bool passed,
                         const Setting &setting, int tiles,
                         const StateScales &scales) {
  std::size_t n = layouts.size();
  bytes.resize(n);
  for (std::size_t i = 0; i < n; ++i)
    bytes[i] = localBytes(shape, layouts[i], elementBytes, setting.mesh);
  auto table = [&](auto timeOf) {
    std::vector<double> prices(n * n, 0.0);
    for (std::size_t from = 0; from < n; ++from)
      for (std::size_t to = 0; to < n; ++to)
        if (from != to)
          prices[from * n + to] = sumOfSteps(layouts[from], layouts[to], shape,
                                             setting.mesh, timeOf)
                                      .value;
    return prices;
  };
  auto exposed = [&](Phase phase) {
    return table([&, phase](const StepMove &step, double elements) {
      // A replicated 16-bit value must not become partial, because every step
      // of the reduction would round a partial sum to 16 bits.
      if (step.kind == StepKind::maskToRoot && elementBytes < 4)
        return Seconds{kInfinity};
      if (isCollective(step.kind) && !setting.collectives.allows(step.kind))
        return Seconds{kInfinity};
      return exposedTime(step, elements, elementBytes, phase, setting);
    });
  };
  const TensorTraffic &tensor = setting.software->tensor;
  backwardSeconds.clear();
  if (!passed) {
    seconds = table([&](const StepMove &step, double elements) {
      const MeshAxis &axis = setting.mesh.axes[at(step.axis)];
      const double scale = !isCollective(step.kind) ? scales.local
                           : roleOf(axis) == AxisRole::tensor
                               ? scales.overTensorRanks
                               : scales.betweenReplicas;
      return stateTime(step, elements, elementBytes, setting, tiles) * scale;
    });
    return;
  }
  seconds = exposed(Phase::forward);
  if (tensor.hiddenForward != tensor.hiddenBackward)
    backwardSeconds = exposed(Phase::backward);
}

void LayoutDomain::keepInPlace(int axis) {
  for (std::size_t from = 0; from < layouts.size(); ++from) {
    int placed = placementOf(layouts[from], axis);
    for (std::size_t to = 0; to < layouts.size(); ++to)
      if (placed >= 0 && placed != placementOf(layouts[to], axis))
        seconds[from * layouts.size() + to] = kInfinity;
  }
}

void LayoutDomain::restrictBetweenReplicas(
    const std::vector<StepKind> &kinds, const std::vector<std::int64_t> &shape,
    const Mesh &mesh) {
  for (std::size_t from = 0; from < layouts.size(); ++from)
    for (std::size_t to = 0; to < layouts.size(); ++to)
      forEachStep(layouts[from], layouts[to], shape, mesh,
                  [&](const StepMove &step, double) {
                    if (roleOf(mesh.axes[at(step.axis)]) != AxisRole::tensor &&
                        !contains(kinds, step.kind))
                      seconds[from * layouts.size() + to] = kInfinity;
                  });
}

ConversionTrees::ConversionTrees(const LayoutDomain &theDomain, Phase thePhase)
    : size(theDomain.size()) {
  if (size > 64)
    throw TooLarge("a value has " + std::to_string(size) +
                   " layouts; at most 64 can be compared");
  for (int from = 0; from < size; ++from)
    for (int to = 0; to < size; ++to) {
      paths.push_back(from == to ? 0.0 : theDomain.between(from, to, thePhase));
      nexts.push_back(to);
    }
  // Runs the Floyd-Warshall algorithm. A direct conversion wins ties.
  for (int by = 0; by < size; ++by)
    for (int from = 0; from < size; ++from)
      for (int to = 0; to < size; ++to) {
        double price = pathPrice(from, by) + pathPrice(by, to);
        if (isCheaper(price, pathPrice(from, to))) {
          paths[at(from * size + to)] = price;
          nexts[at(from * size + to)] = nexts[at(from * size + by)];
        }
      }
}

ConversionTrees::Trees &ConversionTrees::treesTo(LayoutSet set) {
  auto [entry, isNew] = known.try_emplace(set);
  Trees &trees = entry->second;
  if (!isNew)
    return trees;
  const LayoutSet first = set & (~set + 1);
  trees.price.resize(at(size));
  if (set == first) {
    for (int root = 0; root < size; ++root)
      trees.price[at(root)] = pathPrice(root, std::countr_zero(set));
    return trees;
  }
  // Each division of the set is visited once, because `part` always contains
  // the set's first layout.
  std::vector<double> atBranch(at(size), kInfinity);
  trees.part.assign(at(size), first);
  const LayoutSet others = set ^ first;
  for (LayoutSet rest = others; rest != 0; rest = (rest - 1) & others) {
    const std::vector<double> &one = treesTo(set ^ rest).price,
                              &two = treesTo(rest).price;
    for (std::size_t branch = 0; branch < at(size); ++branch)
      if (double price = one[branch] + two[branch]; price < atBranch[branch]) {
        atBranch[branch] = price;
        trees.part[branch] = set ^ rest;
      }
  }
  trees.branch.resize(at(size));
  for (int root = 0; root < size; ++root) {
    trees.branch[at(root)] = root;
    double &least = trees.price[at(root)] = atBranch[at(root)];
    for (int branch = 0; branch < size; ++branch)
      if (double price = pathPrice(root, branch) + atBranch[at(branch)];
          isCheaper(price, least)) {
        least = price;
        trees.branch[at(root)] = branch;
      }
  }
  return trees;
}

// Appends the tree's conversions, except those to layouts in `have`.
void ConversionTrees::appendTree(int root, LayoutSet set, LayoutSet &have,
                                 std::vector<std::pair<int, int>> &found) {
  const Trees &trees = treesTo(set);
  const bool isOne = trees.branch.empty();
  const int end = isOne ? std::countr_zero(set) : trees.branch[at(root)];
  for (int from = root; from != end;) {
    const int to = nexts[at(from * size + end)];
    if ((have & setOf(to)) == 0)
      found.emplace_back(from, to);
    have |= setOf(to);
    from = to;
  }
  if (isOne)
    return;
  const LayoutSet part = trees.part[at(end)];
  appendTree(end, part, have, found);
  appendTree(end, set ^ part, have, found);
}

std::vector<std::pair<int, int>> ConversionTrees::conversions(int made,
                                                              LayoutSet set) {
  std::vector<std::pair<int, int>> found;
  LayoutSet have = setOf(made);
  if (set != 0)
    appendTree(made, set, have, found);
  return found;
}

std::vector<Layout> boundaryLayouts(const Tensor &tensor,
                                    const Setting &setting) {
  const int tensorAxis = tensorAxisOf(setting.mesh);
  auto splitOf = [&](std::size_t d) {
    return static_cast<int>(d) == tensor.batchDim ? Split::batch
           : d + 1 == tensor.shape.size()         ? Split::hidden
                                                  : Split::sequence;
  };
  Layout base = Layout::replicated(tensor.shape.size());
  for (int axis = 0; axis < tensorAxis; ++axis)
    for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
      Layout layout = withPlacement(base, axis, static_cast<int>(d));
      if (setting.mesh.axes[at(axis)].size > 1 &&
          setting.rules[at(axis)].has(splitOf(d)) &&
          divides(tensor.shape, layout, setting.mesh)) {
        base = layout;
        break;
      }
    }
  return tensorLayouts(
      base, tensor.shape, setting.mesh, [&](int axis, int placement) {
        const bool isWanted =
            !setting.boundary ||
            (*setting.boundary)[at(axis - tensorAxis)] == placement;
        return isWanted &&
               (placement == kReplicated ||
                setting.rules[at(axis)].has(splitOf(at(placement))));
      });
}

} // namespace mtplan::planner
