//===- conversions.cpp - The layout changes of one value ------------------===//

#include "planner/search/segment/conversions.h"

#include <algorithm>
#include <set>

#include "planner/integers.h"

namespace mtplan::planner {

namespace {

// Returns the producer and the readers, the first of each variable.
std::vector<const Port *> portsByVariable(const Conversions &conversions) {
  std::vector<const Port *> ports{&conversions.maker};
  for (const Port &reader : conversions.readers)
    if (std::ranges::none_of(ports, [&](const Port *port) {
          return port->variable == reader.variable;
        }))
      ports.push_back(&reader);
  return ports;
}

// Returns, for each value of the port's variable, the set of layouts that the
// readers with this variable require.
std::vector<LayoutSet> setsOf(const Conversions &conversions,
                              const Port &port) {
  std::vector<LayoutSet> sets(port.layouts.size(), LayoutSet{0});
  for (const Port &reader : conversions.readers)
    if (reader.variable == port.variable)
      for (std::size_t v = 0; v < sets.size(); ++v)
        sets[v] |= setOf(reader.layouts[v]);
  return sets;
}

} // namespace

bool hasLargeTable(const Conversions &conversions) {
  constexpr std::size_t kForTwo = std::size_t{1} << 14,
                        kForMore = std::size_t{1} << 17;
  const std::vector<const Port *> ports = portsByVariable(conversions);
  const std::size_t most = ports.size() <= 3 ? kForTwo : kForMore;
  std::size_t entries = 1;
  for (const Port *port : ports)
    entries = std::min(entries * port->layouts.size(), most + 1);
  return entries > most;
}

CostTable directTable(const Conversions &conversions,
                      const LayoutDomain &domain) {
  const std::vector<const Port *> ports = portsByVariable(conversions);
  CostTable table;
  std::vector<LayoutSet> sets{0}; // by the values of the readers' variables
  for (const Port *port : ports) {
    table.scope.push_back(port->variable);
    if (port == ports.front())
      continue;
    std::vector<LayoutSet> all;
    for (LayoutSet set : sets)
      for (LayoutSet more : setsOf(conversions, *port))
        all.push_back(set | more);
    sets = std::move(all);
  }
  ConversionTrees trees(domain, conversions.phase);
  const std::vector<LayoutSet> own = setsOf(conversions, conversions.maker);
  for (std::size_t v = 0; v < own.size(); ++v)
    for (LayoutSet set : sets)
      table.time.push_back(
          trees.prices(set | own[v])[at(conversions.maker.layouts[v])]);
  return table;
}

void chooseSets(Conversions &conversions) {
  std::set<LayoutSet> sets = {0};
  for (const Port &reader : conversions.readers) {
    std::set<LayoutSet> more;
    for (LayoutSet set : sets)
      for (int layout : reader.layouts)
        more.insert(set | setOf(layout));
    sets = std::move(more);
  }
  conversions.sets.assign(sets.begin(), sets.end());
}

CostTable setTable(const Conversions &conversions, const LayoutDomain &domain) {
  ConversionTrees trees(domain, conversions.phase);
  CostTable table{
      {conversions.maker.variable, conversions.setVariable}, {}, {}};
  for (int made : conversions.maker.layouts)
    for (LayoutSet set : conversions.sets)
      table.time.push_back(trees.prices(set)[at(made)]);
  return table;
}

CostTable membershipTable(const Conversions &conversions, const Port &reader) {
  CostTable table{{conversions.setVariable, reader.variable}, {}, {}};
  for (LayoutSet set : conversions.sets)
    for (int layout : reader.layouts)
      table.time.push_back((set & setOf(layout)) != 0 ? 0.0 : kInfinity);
  return table;
}

} // namespace mtplan::planner
