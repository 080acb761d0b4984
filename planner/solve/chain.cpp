//===- chain.cpp - Pricing and checking a chain -----------------*- C++ -*-===//
//
// Deliberately plain, as factor_graph.cpp is: the fast solvers are tested
// against it.
//
//===----------------------------------------------------------------------===//

#include "planner/solve/chain.h"

#include <cstddef>
#include <map>

#include "planner/solve/chain_solver.h"

namespace mtplan::planner {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<int> valuesAt(const std::vector<int> &variables,
                          const Assignment &assignment) {
  std::vector<int> values;
  values.reserve(variables.size());
  for (int variable : variables)
    values.push_back(assignment[variable]);
  return values;
}

class ChainChecker {
public:
  explicit ChainChecker(const ChainProblem &theChain) : chain(theChain) {}

  std::vector<std::string> run() {
    if (chain.links.empty())
      errors.emplace_back("the chain has no links");
    for (std::size_t i = 0; i < chain.links.size(); ++i)
      checkLink(i);
    if (!errors.empty()) // invalid domains follow
      return std::move(errors);
    for (std::size_t i = 0; i < chain.links.size(); ++i) {
      const Link &link = chain.links[i];
      if (i + 1 < chain.links.size())
        checkInterface("links " + std::to_string(i) + " and " +
                           std::to_string(i + 1),
                       link, chain.links[i + 1]);
      if (link.repeat > 1)
        checkInterface("copies of link " + std::to_string(i), link, link);
      for (auto [variable, id] : link.shared) {
        int domain = link.problem.domains[variable];
        if (sharedDomains.emplace(id, domain).first->second != domain)
          errors.push_back("link " + std::to_string(i) + ": shared id " +
                           std::to_string(id) + " has another domain here");
      }
    }
    return std::move(errors);
  }

private:
  void checkLink(std::size_t index) {
    const Link &link = chain.links[index];
    std::string where = "link " + std::to_string(index) + ": ";
    for (const std::string &error : check(link.problem))
      errors.push_back(where + error);
    if (link.repeat < 1)
      errors.push_back(where + "repeat is " + std::to_string(link.repeat));
    auto checkVariable = [&](int variable, const char *list) {
      if (variable < 0 ||
          variable >= static_cast<int>(link.problem.domains.size()))
        errors.push_back(where + list + " variable " +
                         std::to_string(variable) + " does not exist");
    };
    for (int variable : link.in)
      checkVariable(variable, "in");
    for (int variable : link.out)
      checkVariable(variable, "out");
    for (auto [variable, id] : link.shared)
      checkVariable(variable, "shared");
  }

  void checkInterface(const std::string &where, const Link &from,
                      const Link &to) {
    bool match = from.out.size() == to.in.size();
    for (std::size_t i = 0; match && i < from.out.size(); ++i)
      match = from.problem.domains[from.out[i]] == to.problem.domains[to.in[i]];
    if (!match)
      errors.push_back(where + ": out and in do not match");
  }

  const ChainProblem &chain;
  std::vector<std::string> errors;
  std::map<int, int> sharedDomains;
};

} // namespace

std::vector<std::string> check(const ChainProblem &chain) {
  return ChainChecker(chain).run();
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

ChainSolution solveChain(const ChainProblem &chain) {
  return ChainSolver(chain).solve(chain);
}

} // namespace mtplan::planner
