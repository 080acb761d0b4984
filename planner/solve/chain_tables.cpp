//===- chain_tables.cpp - All links' tables at one objective --------------===//
//
// A variable may be both an in and an out variable of a link (a tensor that is
// passed through), and may also be shared. A combination that gives the
// variable two values costs infinity. Each link depends on few shared values,
// so the table of a link is computed once for these values and then indexed per
// combination of all shared values. The path is found by Viterbi's algorithm
// and recovered backwards from the distances.
//
//===----------------------------------------------------------------------===//

#include "planner/solve/chain_tables.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace mtplan::planner {

namespace {

/// Sums in different orders can differ by this relative amount.
constexpr double kRounding = 1e-14;

/// Groups equal repeats of [first, last), in order of first appearance.
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

std::vector<int> keptVariables(const Link &link) {
  std::vector<int> keep;
  auto add = [&keep](int variable) {
    if (std::find(keep.begin(), keep.end(), variable) == keep.end())
      keep.push_back(variable);
  };
  for (auto [variable, id] : link.shared)
    add(variable);
  for (int variable : link.in)
    add(variable);
  for (int variable : link.out)
    add(variable);
  return keep;
}

void distancesFromStart(const std::vector<Stage> &stages, Distances &result) {
  result.resize(stages.size() + 1);
  result[0].assign(stages[0].in, 0.0);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const Stage &stage = stages[i];
    std::vector<double> &next = result[i + 1];
    next.assign(stage.out, kInfinity);
    const double *cost = stage.cost;
    for (std::size_t s = 0; s < stage.in; ++s, cost += stage.out) {
      double before = result[i][s];
      if (before == kInfinity)
        continue;
      for (std::size_t t = 0; t < stage.out; ++t)
        next[t] = std::min(next[t], before + cost[t]);
    }
  }
}

void distancesToEnd(const std::vector<Stage> &stages, Distances &result) {
  result.resize(stages.size() + 1);
  result.back().assign(stages.back().out, 0.0);
  for (std::size_t i = stages.size(); i-- > 0;) {
    const Stage &stage = stages[i];
    const std::vector<double> &after = result[i + 1];
    result[i].assign(stage.in, kInfinity);
    const double *cost = stage.cost;
    for (std::size_t s = 0; s < stage.in; ++s, cost += stage.out) {
      double least = kInfinity;
      for (std::size_t t = 0; t < stage.out; ++t)
        least = std::min(least, cost[t] + after[t]);
      result[i][s] = least;
    }
  }
}

std::vector<std::size_t> shortestPath(const std::vector<Stage> &stages,
                                      const Distances &fromStart) {
  const std::vector<double> &last = fromStart.back();
  auto end = std::min_element(last.begin(), last.end());
  if (*end == kInfinity)
    return {};
  std::vector<std::size_t> path(stages.size() + 1);
  path.back() = static_cast<std::size_t>(end - last.begin());
  for (std::size_t i = stages.size(); i-- > 0;) {
    const Stage &stage = stages[i];
    std::size_t to = path[i + 1];
    auto through = [&](std::size_t s) {
      return fromStart[i][s] + stage.cost[s * stage.out + to];
    };
    double reached = fromStart[i + 1][to];
    double enough = reached + kRounding * std::abs(reached);
    bool continues = i > 0 && stages[i - 1].link == stage.link;
    bool follows = i + 1 < stages.size() && stages[i + 1].link == stage.link;
    if ((continues || follows) && to < stage.in && through(to) <= enough) {
      path[i] = to;
      continue;
    }
    std::size_t from = 0;
    while (from + 1 < stage.in && !(through(from) <= enough))
      ++from;
    path[i] = from;
  }
  return path;
}

LinkTable::LinkTable(const Link &link)
    : domains(link.problem.domains), inVariables(link.in),
      outVariables(link.out), sharedVariables(link.shared),
      inside(link.problem, keptVariables(link)) {
  std::map<int, int> sharedDomain;
  for (auto [variable, id] : link.shared)
    sharedDomain[id] = domains[variable];
  for (auto [id, domain] : sharedDomain) {
    ids.push_back(id);
    idDomains.push_back(domain);
    sharedCount *= static_cast<std::size_t>(domain);
  }
  for (int variable : inVariables)
    inCount *= static_cast<std::size_t>(domains[variable]);
  for (int variable : outVariables)
    outCount *= static_cast<std::size_t>(domains[variable]);
  dense.resize(sharedCount * inCount * outCount);
}

bool LinkTable::prepare(const Problem &problem) {
  if (!inside.prepare(problem))
    return false;
  if (mappedGeneration != inside.generation())
    mapEntries();
  return true;
}

bool LinkTable::fixValues(std::size_t shared, std::size_t inState,
                          std::size_t outState,
                          std::vector<int> &values) const {
  values.assign(domains.size(), -1);
  bool consistent = true;
  auto fix = [&](int variable, std::size_t &rest, int domain) {
    auto size = static_cast<std::size_t>(domain);
    int digit = static_cast<int>(rest % size);
    rest /= size;
    consistent &= values[variable] < 0 || values[variable] == digit;
    values[variable] = digit;
  };
  for (std::size_t i = outVariables.size(); i-- > 0;)
    fix(outVariables[i], outState, domains[outVariables[i]]);
  for (std::size_t i = inVariables.size(); i-- > 0;)
    fix(inVariables[i], inState, domains[inVariables[i]]);
  for (std::size_t k = ids.size(); k-- > 0;) {
    for (auto [variable, id] : sharedVariables) {
      std::size_t rest = shared;
      if (id == ids[k])
        fix(variable, rest, idDomains[k]);
    }
    shared /= static_cast<std::size_t>(idDomains[k]);
  }
  return consistent;
}

std::vector<int> LinkTable::keptValues(std::size_t shared, std::size_t inState,
                                       std::size_t outState) const {
  std::vector<int> values;
  std::vector<int> kept;
  if (fixValues(shared, inState, outState, values))
    for (int variable : inside.program().keep)
      kept.push_back(values[variable]);
  return kept;
}

void LinkTable::mapEntries() {
  mappedGeneration = inside.generation();
  const EliminationProgram &program = inside.program();
  entryAt.assign(dense.size(), -1);
  std::vector<int> values;
  for (std::size_t s = 0; s < sharedCount; ++s)
    for (std::size_t i = 0; i < inCount; ++i)
      for (std::size_t o = 0; o < outCount; ++o) {
        bool possible = fixValues(s, i, o, values);
        std::size_t entry = 0;
        for (std::size_t k = 0; possible && k < program.keep.size(); ++k) {
          int value = values[program.keep[k]];
          const std::vector<int> &live = program.live[program.keep[k]];
          auto found = std::lower_bound(live.begin(), live.end(), value);
          possible = found != live.end() && *found == value;
          entry = entry * live.size() +
                  static_cast<std::size_t>(found - live.begin());
        }
        if (possible)
          entryAt[position(s, i, o)] = static_cast<int>(entry);
      }
}

void LinkTable::run(const Problem &problem, Objective objective) {
  inside.run(problem, objective);
  const double *table = inside.table();
  for (std::size_t i = 0; i < dense.size(); ++i)
    dense[i] = entryAt[i] < 0 ? kInfinity : table[entryAt[i]];
}

Assignment LinkTable::decode(std::size_t shared, std::size_t inState,
                             std::size_t outState) const {
  std::vector<int> kept = keptValues(shared, inState, outState);
  if (kept.size() != inside.program().keep.size())
    return {};
  return inside.decode(kept);
}

std::vector<Run> runsOf(const std::vector<Link> &links,
                        const std::vector<int> &linkOf,
                        std::vector<Assignment> repeats) {
  auto staysPut = [&](std::size_t i) {
    const Link &link = links[linkOf[i]];
    auto valueOf = [&](int variable) { return repeats[i][variable]; };
    return std::ranges::equal(link.in, link.out, {}, valueOf, valueOf);
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
  double best = kInfinity;
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
  // `distances` holds the distances of the last combination.
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
