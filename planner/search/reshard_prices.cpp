//===- reshard_prices.cpp - What it costs to want a tensor elsewise -------===//

#include "planner/search/reshard_prices.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "planner/cost/collective_cost.h"

namespace mtplan::planner {

static double elementsOf(const std::vector<std::int64_t> &shape) {
  double product = 1.0;
  for (std::int64_t size : shape)
    product *= static_cast<double>(size);
  return product;
}

Seconds stepTime(const ReshardStep &step,
                 const std::vector<std::int64_t> &localBefore, int elementBytes,
                 const Mesh &mesh, const Machine &machine) {
  const MeshAxis &axis = mesh.axes[static_cast<std::size_t>(step.axis)];
  Bytes piece{elementsOf(localBefore) * elementBytes};
  if (isCollective(step.kind))
    return collectiveTime(step.kind, piece, {axis.size, mesh.stride(step.axis)},
                          machine);
  // A local step reads and writes what it keeps.
  double kept = step.kind == StepKind::slice ? 1.0 / axis.size : 1.0;
  return 2.0 * kept * piece /
         (machine.device.bandwidth * machine.device.bandwidthEfficiency);
}

Seconds reshardTime(const Layout &from, const Layout &to,
                    const std::vector<std::int64_t> &shape, int elementBytes,
                    const Mesh &mesh, const Machine &machine) {
  Seconds total;
  std::vector<std::int64_t> local = localShape(shape, from, mesh);
  for (const ReshardStep &step : reshardSteps(from, to)) {
    total += stepTime(step, local, elementBytes, mesh, machine);
    local = localShape(shape, step.result, mesh);
  }
  return total;
}

double localBytes(const std::vector<std::int64_t> &shape, const Layout &layout,
                  int elementBytes, const Mesh &mesh) {
  double bytes = elementsOf(shape) * elementBytes;
  for (const std::vector<int> &dim : layout.dims)
    for (int axis : dim)
      bytes /= mesh.axes[static_cast<std::size_t>(axis)].size;
  return bytes;
}

int LayoutDomain::find(const Layout &layout) const {
  auto at = std::ranges::find(layouts, layout);
  return at == layouts.end() ? -1 : static_cast<int>(at - layouts.begin());
}

int LayoutDomain::add(const Layout &layout) {
  int index = find(layout);
  if (index >= 0)
    return index;
  layouts.push_back(layout);
  return size() - 1;
}

void LayoutDomain::price(const std::vector<std::int64_t> &shape,
                         int elementBytes, const Setting &setting) {
  std::size_t n = layouts.size();
  seconds.assign(n * n, 0.0);
  bytes.resize(n);
  for (std::size_t from = 0; from < n; ++from) {
    bytes[from] = localBytes(shape, layouts[from], elementBytes, setting.mesh);
    for (std::size_t to = 0; to < n; ++to)
      if (from != to)
        seconds[from * n + to] =
            reshardTime(layouts[from], layouts[to], shape, elementBytes,
                        setting.mesh, *setting.machine)
                .value;
  }
}

namespace {

// best[S]: cheapest way to have the layouts of S beside `made`; last[S] and
// parent[S]: the conversion that comes last in it.
struct SubsetTable {
  std::vector<int> members; // bit i of a subset is layout members[i]
  std::vector<double> best;
  std::vector<int> last, parent;
};

SubsetTable fillSubsets(const LayoutDomain &domain, int made, unsigned wanted) {
  SubsetTable table;
  for (int i = 0; i < domain.size(); ++i)
    if ((wanted >> i & 1U) && i != made)
      table.members.push_back(i);
  std::size_t subsets = std::size_t{1} << table.members.size();
  table.best.assign(subsets, std::numeric_limits<double>::infinity());
  table.last.assign(subsets, -1);
  table.parent.assign(subsets, -1);
  table.best[0] = 0.0;
  for (std::size_t set = 1; set < subsets; ++set)
    for (std::size_t i = 0; i < table.members.size(); ++i) {
      if (!(set >> i & 1U))
        continue;
      std::size_t before = set & ~(std::size_t{1} << i);
      auto tryParent = [&](int parent) {
        double cost =
            table.best[before] + domain.between(parent, table.members[i]);
        if (cost < table.best[set]) {
          table.best[set] = cost;
          table.last[set] = static_cast<int>(i);
          table.parent[set] = parent;
        }
      };
      tryParent(made);
      for (std::size_t j = 0; j < table.members.size(); ++j)
        if (before >> j & 1U)
          tryParent(table.members[j]);
    }
  return table;
}

} // namespace

double materialiseCost(const LayoutDomain &domain, int made, unsigned wanted) {
  wanted &= ~(1U << made);
  if (wanted == 0)
    return 0.0;
  if (std::has_single_bit(wanted))
    return domain.between(made, std::countr_zero(wanted));
  return fillSubsets(domain, made, wanted).best.back();
}

std::vector<std::pair<int, int>> materialise(const LayoutDomain &domain,
                                             int made, unsigned wanted) {
  std::vector<std::pair<int, int>> conversions;
  SubsetTable table = fillSubsets(domain, made, wanted);
  std::size_t set = table.best.size() - 1;
  while (set != 0) {
    auto last = static_cast<std::size_t>(table.last[set]);
    conversions.emplace_back(table.parent[set], table.members[last]);
    set &= ~(std::size_t{1} << last);
  }
  std::ranges::reverse(conversions);
  return conversions;
}

} // namespace mtplan::planner
