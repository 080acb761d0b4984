//===- exhaustive.h - Chains solved by trying everything --------*- C++ -*-===//
//
// The code is deliberately simple: the fast solver is tested against it, and
// shares only the pricing of single assignments with it.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_PLANNER_SOLVE_EXHAUSTIVE_H
#define MTPLAN_TESTS_PLANNER_SOLVE_EXHAUSTIVE_H

#include <cmath>
#include <cstddef>
#include <map>
#include <vector>

#include "planner/solve/chain_solver.h"

namespace mtplan::planner {

/// Moves to the next assignment in lexicographic order; returns false after the
/// last.
inline bool advance(Assignment &assignment, const std::vector<int> &domains) {
  for (std::size_t v = assignment.size(); v-- > 0;) {
    if (++assignment[v] < domains[v])
      return true;
    assignment[v] = 0;
  }
  return false;
}

/// Holds a legal assignment of one repeat and its cost.
struct Choice {
  Assignment assignment;
  Cost cost;
};

/// Tries every assignment of every repeat, in lexicographic order.
class ExhaustiveSearch {
public:
  explicit ExhaustiveSearch(const ChainProblem &theChain) : chain(theChain) {
    for (std::size_t l = 0; l < chain.links.size(); ++l) {
      const Problem &problem = chain.links[l].problem;
      std::vector<Choice> legal;
      Assignment assignment(problem.domains.size(), 0);
      do {
        Cost cost = costOf(problem, assignment);
        if (!std::isinf(cost.time))
          legal.push_back({assignment, cost});
      } while (advance(assignment, problem.domains));
      choices.push_back(std::move(legal));
      for (int repeat = 0; repeat < chain.links[l].repeat; ++repeat)
        linkOf.push_back(static_cast<int>(l));
    }
  }

  ChainSolution run() {
    visit({});
    ChainSolution solution;
    solution.feasible = !fastest.empty();
    const auto &best = solution.feasible ? fastest : smallest;
    for (std::size_t repeat = 0; repeat < best.size(); ++repeat) {
      int link = linkOf[repeat];
      if (!solution.runs.empty() && solution.runs.back().link == link &&
          solution.runs.back().assignment == best[repeat]->assignment)
        ++solution.runs.back().count;
      else
        solution.runs.push_back({link, 1, best[repeat]->assignment});
    }
    solution.cost =
        best.empty() ? Cost{kInfinity, 0.0} : costOf(chain, solution.runs);
    solution.optimal = solution.feasible;
    solution.lowerBound = solution.feasible ? solution.cost.time : kInfinity;
    return solution;
  }

private:
  bool fits(const Choice &choice, std::map<int, int> &sharedValues) const {
    const Link &link = chain.links[linkOf[path.size()]];
    if (!path.empty()) {
      const Link &before = chain.links[linkOf[path.size() - 1]];
      for (std::size_t i = 0; i < link.in.size(); ++i)
        if (path.back()->assignment[before.out[i]] !=
            choice.assignment[link.in[i]])
          return false;
    }
    for (auto [variable, id] : link.shared) {
      int value = choice.assignment[variable];
      if (sharedValues.emplace(id, value).first->second != value)
        return false;
    }
    return true;
  }

  void visit(const std::map<int, int> &sharedValues) {
    if (path.size() == linkOf.size()) {
      judge();
      return;
    }
    for (const Choice &choice : choices[linkOf[path.size()]]) {
      std::map<int, int> extended = sharedValues;
      if (!fits(choice, extended))
        continue;
      path.push_back(&choice);
      visit(extended);
      path.pop_back();
    }
  }

  void judge() {
    Cost cost;
    for (const Choice *choice : path) {
      cost.time += choice->cost.time;
      cost.memory += choice->cost.memory;
    }
    auto less = [](double a, double b, const Cost &x, const Cost &y) {
      return a != b ? a < b : x.time + x.memory < y.time + y.memory;
    };
    if (cost.memory <= chain.memoryLimit &&
        (fastest.empty() ||
         less(cost.time, fastestCost.time, cost, fastestCost))) {
      fastest = path;
      fastestCost = cost;
    }
    if (smallest.empty() ||
        less(cost.memory, smallestCost.memory, cost, smallestCost)) {
      smallest = path;
      smallestCost = cost;
    }
  }

  const ChainProblem &chain;
  std::vector<int> linkOf;                  ///< the link of each repeat
  std::vector<std::vector<Choice>> choices; ///< per link, the legal choices
  std::vector<const Choice *> path, fastest, smallest;
  Cost fastestCost, smallestCost;
};

/// Returns the best solution after trying every assignment, in exponential
/// time.
inline ChainSolution solveChainExhaustively(const ChainProblem &chain) {
  return ExhaustiveSearch(chain).run();
}

/// Returns the optimum that a newly made solver finds.
/// \throws std::invalid_argument with the first error of check()
inline ChainSolution solveChain(const ChainProblem &chain) {
  return ChainSolver(chain).solve(chain);
}

} // namespace mtplan::planner

#endif // MTPLAN_TESTS_PLANNER_SOLVE_EXHAUSTIVE_H
