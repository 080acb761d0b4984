//===- chain_tables.cpp - All links' tables at one objective ----*- C++ -*-===//
//
// Links depend on few of the shared values each, so their tables are computed
// once for all combinations and looked up per combination.
//
//===----------------------------------------------------------------------===//

#include "planner/solve/chain_tables.h"

#include <algorithm>
#include <map>

namespace mtplan::planner {
namespace {

std::vector<int> valuesAt(const std::vector<int> &variables,
                          const Assignment &assignment) {
  std::vector<int> values;
  values.reserve(variables.size());
  for (int variable : variables)
    values.push_back(assignment[variable]);
  return values;
}

/// Groups equal ones of [first, last), in order of first appearance.
void gather(std::vector<Assignment> &repeats, std::size_t first,
            std::size_t last) {
  std::map<Assignment, std::size_t> seen;
  std::vector<std::pair<Assignment, int>> kinds;
  for (std::size_t i = first; i < last; ++i) {
    auto [at, isNew] = seen.emplace(repeats[i], kinds.size());
    if (isNew)
      kinds.emplace_back(repeats[i], 0);
    ++kinds[at->second].second;
  }
  for (const auto &[assignment, count] : kinds)
    for (int i = 0; i < count; ++i)
      repeats[first++] = assignment;
}

} // namespace

std::vector<Run> runsOf(const std::vector<Link> &links,
                        const std::vector<int> &linkOf,
                        std::vector<Assignment> repeats) {
  auto staysPut = [&](std::size_t i) {
    const Link &link = links[linkOf[i]];
    return valuesAt(link.in, repeats[i]) == valuesAt(link.out, repeats[i]);
  };
  for (std::size_t first = 0; first < repeats.size();) {
    std::size_t last = first + 1;
    if (links[linkOf[first]].repeat > 1 && staysPut(first)) {
      while (last < repeats.size() && linkOf[last] == linkOf[first] &&
             staysPut(last))
        ++last;
      gather(repeats, first, last);
    }
    first = last;
  }
  std::vector<Run> runs;
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    if (!runs.empty() && runs.back().link == linkOf[i] && i > 0 &&
        runs.back().assignment == repeats[i])
      ++runs.back().count;
    else
      runs.push_back({linkOf[i], 1, std::move(repeats[i])});
  }
  return runs;
}

ChainTables::ChainTables(const ChainProblem &shape) {
  std::map<int, int> sharedDomain;
  for (const Link &link : shape.links) {
    tables.emplace_back(link);
    for (auto [variable, id] : link.shared)
      sharedDomain[id] = link.problem.domains[variable];
  }
  for (auto [id, domain] : sharedDomain)
    combinations *= static_cast<std::size_t>(domain);
  for (const LinkTable &table : tables) {
    std::vector<std::size_t> numbers;
    for (std::size_t c = 0; c < combinations; ++c) {
      std::map<int, std::size_t> value;
      std::size_t rest = c;
      for (auto [id, domain] : sharedDomain) {
        value[id] = rest % static_cast<std::size_t>(domain);
        rest /= static_cast<std::size_t>(domain);
      }
      std::size_t number = 0;
      for (std::size_t k = 0; k < table.sharedIds().size(); ++k)
        number = number * static_cast<std::size_t>(table.sharedDomains()[k]) +
                 value[table.sharedIds()[k]];
      numbers.push_back(number);
    }
    local.push_back(std::move(numbers));
  }
}

bool ChainTables::prepare(const ChainProblem &chain) {
  links.clear();
  for (std::size_t l = 0; l < chain.links.size(); ++l)
    links.insert(links.end(), static_cast<std::size_t>(chain.links[l].repeat),
                 static_cast<int>(l));
  for (std::size_t l = 0; l < tables.size(); ++l)
    if (!tables[l].prepare(chain.links[l].problem))
      return false;
  return true;
}

std::vector<std::vector<double>> ChainTables::costs() const {
  std::vector<std::vector<double>> result;
  for (const LinkTable &table : tables)
    result.push_back(table.costs());
  return result;
}

std::vector<Stage>
ChainTables::stages(std::size_t combination,
                    const std::vector<std::vector<double>> *costs) const {
  std::vector<Stage> result;
  result.reserve(links.size());
  for (int link : links) {
    const LinkTable &table = tables[link];
    const std::vector<double> &values =
        costs == nullptr ? table.costs() : (*costs)[link];
    result.push_back(
        {link, values.data() + table.position(local[link][combination], 0, 0),
         table.inStates(), table.outStates()});
  }
  return result;
}

double ChainTables::run(const ChainProblem &chain, Objective objective) {
  for (std::size_t l = 0; l < tables.size(); ++l)
    tables[l].run(chain.links[l].problem, objective);
  double best = std::numeric_limits<double>::infinity();
  bestCombination = 0;
  for (std::size_t c = 0; c < combinations; ++c) {
    distancesFromStart(stages(c), distances);
    double least =
        *std::min_element(distances.back().begin(), distances.back().end());
    if (least < best) {
      best = least;
      bestCombination = c;
    }
  }
  // The distances belong to the last combination.
  if (bestCombination + 1 != combinations)
    distancesFromStart(stages(bestCombination), distances);
  return best;
}

std::vector<Run> ChainTables::decode(const ChainProblem &chain) const {
  std::vector<std::size_t> path =
      shortestPath(stages(bestCombination), distances);
  if (path.empty())
    return {};
  std::vector<Assignment> repeats;
  repeats.reserve(links.size());
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (i > 0 && links[i] == links[i - 1] && path[i] == path[i - 1] &&
        path[i] == path[i + 1])
      repeats.push_back(repeats.back());
    else
      repeats.push_back(tables[links[i]].decode(
          local[links[i]][bestCombination], path[i], path[i + 1]));
  }
  return runsOf(chain.links, links, std::move(repeats));
}

} // namespace mtplan::planner
