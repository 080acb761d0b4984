//===- link_table.cpp - A link, seen from its boundary ----------*- C++ -*-===//
//
// A variable may be on both sides (a tensor that is passed along) or be shared
// as well: combinations that give it two values cost infinity.
//
//===----------------------------------------------------------------------===//

#include "planner/solve/link_table.h"

#include <algorithm>
#include <map>

namespace mtplan::planner {
namespace {

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

} // namespace

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
    dense[i] = entryAt[i] < 0 ? std::numeric_limits<double>::infinity()
                              : table[entryAt[i]];
}

Assignment LinkTable::decode(std::size_t shared, std::size_t inState,
                             std::size_t outState) const {
  std::vector<int> kept = keptValues(shared, inState, outState);
  if (kept.size() != inside.program().keep.size())
    return {};
  return inside.decode(kept);
}

} // namespace mtplan::planner
