//===- factor_graph.cpp - Costs and checks of choice problems -------------===//

#include "planner/solve/factor_graph.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>

namespace mtplan::planner {

namespace {

/// Returns the number of entries that a table over `scope` must have; returns 0
/// and adds an error if the scope is invalid.
std::size_t expectedSize(const Problem &problem, const std::vector<int> &scope,
                         const std::string &where,
                         std::vector<std::string> &errors) {
  std::size_t size = 1;
  for (std::size_t i = 0; i < scope.size(); ++i) {
    int variable = scope[i];
    if (variable < 0 || variable >= static_cast<int>(problem.domains.size())) {
      errors.push_back(where + ": variable " + std::to_string(variable) +
                       " of its scope does not exist");
      return 0;
    }
    if (std::count(scope.begin(), scope.end(), variable) > 1) {
      errors.push_back(where + ": variable " + std::to_string(variable) +
                       " occurs twice in its scope");
      return 0;
    }
    size *= static_cast<std::size_t>(std::max(problem.domains[variable], 0));
  }
  return size;
}

std::vector<int> valuesAt(const std::vector<int> &variables,
                          const Assignment &assignment) {
  std::vector<int> values;
  values.reserve(variables.size());
  for (int variable : variables)
    values.push_back(assignment[variable]);
  return values;
}

void checkLink(const Link &link, const std::string &where,
               std::vector<std::string> &errors) {
  for (const std::string &error : check(link.problem))
    errors.push_back(where + error);
  if (link.repeat < 1)
    errors.push_back(where + "repeat is " + std::to_string(link.repeat));
  auto checkVariable = [&](int variable, const char *list) {
    if (variable < 0 ||
        variable >= static_cast<int>(link.problem.domains.size()))
      errors.push_back(where + list + " variable " + std::to_string(variable) +
                       " does not exist");
  };
  for (int variable : link.in)
    checkVariable(variable, "in");
  for (int variable : link.out)
    checkVariable(variable, "out");
  for (auto [variable, id] : link.shared)
    checkVariable(variable, "shared");
}

bool fits(const Link &from, const Link &to) {
  bool match = from.out.size() == to.in.size();
  for (std::size_t i = 0; match && i < from.out.size(); ++i)
    match = from.problem.domains[from.out[i]] == to.problem.domains[to.in[i]];
  return match;
}

} // namespace

Cost costOf(const Problem &problem, const Assignment &assignment) {
  Cost cost;
  for (const CostTable &table : problem.tables) {
    std::size_t entry = 0;
    for (int variable : table.scope)
      entry = entry * static_cast<std::size_t>(problem.domains[variable]) +
              static_cast<std::size_t>(assignment[variable]);
    cost.time += table.time[entry];
    if (!table.memory.empty())
      cost.memory += table.memory[entry];
  }
  return cost;
}

std::vector<std::string> check(const Problem &problem) {
  std::vector<std::string> errors;
  for (std::size_t i = 0; i < problem.domains.size(); ++i)
    if (problem.domains[i] < 1)
      errors.push_back("variable " + std::to_string(i) + ": domain is " +
                       std::to_string(problem.domains[i]) +
                       ", must be at least 1");
  for (std::size_t i = 0; i < problem.tables.size(); ++i) {
    const CostTable &table = problem.tables[i];
    std::string where = "table " + std::to_string(i);
    std::size_t size = expectedSize(problem, table.scope, where, errors);
    if (size == 0)
      continue;
    if (table.time.size() != size)
      errors.push_back(where + ": has " + std::to_string(table.time.size()) +
                       " times, its scope needs " + std::to_string(size));
    if (!table.memory.empty() && table.memory.size() != size)
      errors.push_back(where + ": has " + std::to_string(table.memory.size()) +
                       " memory entries, its scope needs " +
                       std::to_string(size));
    auto badTime = [](double time) {
      return std::isnan(time) || (std::isinf(time) && time < 0);
    };
    if (std::any_of(table.time.begin(), table.time.end(), badTime))
      errors.push_back(where + ": a time is not a number or -infinity");
    if (std::any_of(table.memory.begin(), table.memory.end(),
                    [](double bytes) { return !std::isfinite(bytes); }))
      errors.push_back(where + ": a memory entry is not finite");
  }
  return errors;
}

std::vector<std::string> check(const ChainProblem &chain) {
  std::vector<std::string> errors;
  if (chain.links.empty())
    errors.emplace_back("the chain has no links");
  for (std::size_t i = 0; i < chain.links.size(); ++i)
    checkLink(chain.links[i], "link " + std::to_string(i) + ": ", errors);
  if (!errors.empty()) // the checks below need valid links
    return errors;
  std::map<int, int> sharedDomains;
  for (std::size_t i = 0; i < chain.links.size(); ++i) {
    const Link &link = chain.links[i];
    const std::string number = std::to_string(i);
    if (i + 1 < chain.links.size() && !fits(link, chain.links[i + 1]))
      errors.push_back("links " + number + " and " + std::to_string(i + 1) +
                       ": the out variables of the first do not match the in "
                       "variables of the second");
    if (link.repeat > 1 && !fits(link, link))
      errors.push_back("repeats of link " + number +
                       ": the out variables do not match the in variables");
    for (auto [variable, id] : link.shared) {
      int domain = link.problem.domains[variable];
      if (sharedDomains.emplace(id, domain).first->second != domain)
        errors.push_back("link " + number + ": shared id " +
                         std::to_string(id) + " has another domain here");
    }
  }
  return errors;
}

Cost costOf(const ChainProblem &chain, const std::vector<Run> &runs) {
  constexpr Cost kBroken = {kInfinity, kInfinity};
  Cost cost;
  std::vector<int> covered(chain.links.size(), 0);
  std::map<int, int> sharedValues;
  const Run *last = nullptr;
  for (const Run &run : runs) {
    if (run.link < 0 || run.link >= static_cast<int>(chain.links.size()) ||
        run.count < 1 || (last != nullptr && run.link < last->link))
      return kBroken;
    const Link &link = chain.links[run.link];
    const std::vector<int> &domains = link.problem.domains;
    if (run.assignment.size() != domains.size())
      return kBroken;
    for (std::size_t v = 0; v < domains.size(); ++v)
      if (run.assignment[v] < 0 || run.assignment[v] >= domains[v])
        return kBroken;
    std::vector<int> entering = valuesAt(link.in, run.assignment);
    if (last != nullptr &&
        valuesAt(chain.links[last->link].out, last->assignment) != entering)
      return kBroken;
    if (run.count > 1 && valuesAt(link.out, run.assignment) != entering)
      return kBroken;
    for (auto [variable, id] : link.shared) {
      int value = run.assignment[variable];
      if (sharedValues.emplace(id, value).first->second != value)
        return kBroken;
    }
    Cost once = costOf(link.problem, run.assignment);
    cost.time += run.count * once.time;
    cost.memory += run.count * once.memory;
    covered[run.link] += run.count;
    last = &run;
  }
  for (std::size_t i = 0; i < covered.size(); ++i)
    if (covered[i] != chain.links[i].repeat)
      return kBroken;
  return cost;
}

} // namespace mtplan::planner
