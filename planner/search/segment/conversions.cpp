//===- conversions.cpp - The layout changes of one value ------------------===//

#include "planner/search/segment/conversions.h"

#include <algorithm>
#include <set>

#include "planner/integers.h"

namespace mtplan::planner {

namespace {

// Returns one port per variable: the producer, and the first reader of each
// other variable.
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

CostTable membershipTable(const Conversions &conversions, const Port &reader) {
  CostTable table{{conversions.setVariable, reader.variable}, {}, {}};
  for (LayoutSet set : conversions.sets)
    for (int layout : reader.layouts)
      table.time.push_back((set & setOf(layout)) != 0 ? 0.0 : kInfinity);
  return table;
}

CostTable savedAsProduced(const Port &maker, const Port &saved,
                          const LayoutDomain &domain) {
  CostTable table{{maker.variable, saved.variable}, {}, {}};
  for (int made : maker.layouts)
    for (int kept : saved.layouts)
      table.time.push_back(made == kept ||
                                   !domain.layouts[at(made)].partial.empty()
                               ? 0.0
                               : kInfinity);
  return table;
}

ConversionTrees &ConversionTables::treesOf(const LayoutDomain &domain,
                                           Phase phase, int number) {
  return trees.try_emplace({number, phase}, domain, phase).first->second;
}

CostTable ConversionTables::directTable(const Conversions &conversions,
                                        const LayoutDomain &domain,
                                        int number) {
  const std::vector<const Port *> ports = portsByVariable(conversions);
  const std::vector<int> &made = conversions.maker.layouts;
  CostTable table;
  std::vector<LayoutSet> key = {static_cast<LayoutSet>(number),
                                static_cast<LayoutSet>(conversions.phase),
                                made.size()};
  for (int layout : made)
    key.push_back(setOf(layout));
  std::vector<std::vector<LayoutSet>> required; // by variable
  for (const Port *port : ports) {
    table.scope.push_back(port->variable);
    required.push_back(setsOf(conversions, *port));
    key.push_back(required.back().size());
    key.insert(key.end(), required.back().begin(), required.back().end());
  }
  auto [entry, isNew] = known.try_emplace(std::move(key));
  if (isNew) {
    std::vector<LayoutSet> sets{0}; // by the values of the readers' variables
    for (std::size_t reader = 1; reader < required.size(); ++reader) {
      std::vector<LayoutSet> all;
      all.reserve(sets.size() * required[reader].size());
      for (LayoutSet set : sets)
        for (LayoutSet more : required[reader])
          all.push_back(set | more);
      sets = std::move(all);
    }
    ConversionTrees &found = treesOf(domain, conversions.phase, number);
    entry->second.reserve(made.size() * sets.size());
    for (std::size_t v = 0; v < made.size(); ++v)
      for (LayoutSet set : sets)
        entry->second.push_back(
            found.prices(set | required[0][v])[at(made[v])]);
  }
  table.time = entry->second;
  return table;
}

CostTable ConversionTables::setTable(const Conversions &conversions,
                                     const LayoutDomain &domain, int number) {
  ConversionTrees &found = treesOf(domain, conversions.phase, number);
  CostTable table{
      {conversions.maker.variable, conversions.setVariable}, {}, {}};
  for (int made : conversions.maker.layouts)
    for (LayoutSet set : conversions.sets)
      table.time.push_back(found.prices(set)[at(made)]);
  return table;
}

} // namespace mtplan::planner
