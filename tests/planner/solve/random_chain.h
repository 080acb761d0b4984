//===- random_chain.h - Small random chains for tests -----*- C++ -*-===//
//
// Costs are integers, so that sums are exact and ties are common. Numbers are
// drawn by plain modulo from mt19937_64, whose sequence the standard fixes.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_PLANNER_SOLVE_RANDOM_CHAIN_H
#define MTPLAN_TESTS_PLANNER_SOLVE_RANDOM_CHAIN_H

#include <algorithm>
#include <random>

#include "planner/solve/factor_graph.h"

namespace mtplan::planner {

class RandomChain {
public:
  explicit RandomChain(unsigned seed) : random(seed) {}

  int draw(int low, int high) {
    auto span = static_cast<unsigned long>(high - low) + 1;
    return low + static_cast<int>(random() % span);
  }
  bool oneIn(int n) { return draw(1, n) == 1; }

  /// Returns a table with ties, infinities and sometimes no memory.
  CostTable table(const std::vector<int> &domains, std::vector<int> scope,
                  int infinityOneIn) {
    CostTable result;
    result.scope = std::move(scope);
    std::size_t size = 1;
    for (int variable : result.scope)
      size *= static_cast<std::size_t>(domains[variable]);
    int largest = oneIn(3) ? 2 : 30;
    bool hasMemory = !oneIn(4);
    for (std::size_t i = 0; i < size; ++i) {
      bool forbidden = infinityOneIn > 0 && oneIn(infinityOneIn);
      result.time.push_back(forbidden ? kInfinity : draw(0, largest));
      if (hasMemory)
        result.memory.push_back(draw(0, largest));
    }
    return result;
  }

  Problem problem(std::vector<int> domains, int tables, int infinityOneIn) {
    Problem result;
    result.domains = std::move(domains);
    std::vector<int> all;
    for (std::size_t v = 0; v < result.domains.size(); ++v)
      all.push_back(static_cast<int>(v));
    for (int i = 0; i < tables; ++i) {
      for (std::size_t v = all.size(); v > 1; --v)
        std::swap(all[v - 1], all[draw(0, static_cast<int>(v) - 1)]);
      int arity = std::min(draw(0, 3), static_cast<int>(all.size()));
      result.tables.push_back(table(
          result.domains, {all.begin(), all.begin() + arity}, infinityOneIn));
    }
    return result;
  }

  /// Returns a chain with at most `mostWays` solutions.
  ChainProblem chain(double mostWays = 20e3) {
    for (;;) {
      ChainProblem result = anyChain();
      if (waysToSolve(result) <= mostWays)
        return result;
    }
  }

private:
  static double combinations(const std::vector<int> &domains,
                             const std::vector<int> &variables) {
    double product = 1.0;
    for (int variable : variables)
      product *= domains[variable];
    return product;
  }

  /// Returns the number of solutions, as if shared variables were independent.
  static double waysToSolve(const ChainProblem &chain) {
    double ways = 1.0;
    for (const Link &link : chain.links)
      for (int copy = 0; copy < link.repeat; ++copy) {
        for (int domain : link.problem.domains)
          ways *= domain;
        if (copy > 0 || &link != &chain.links[0])
          ways /= combinations(link.problem.domains, link.in);
      }
    return ways;
  }

  ChainProblem anyChain() {
    ChainProblem result;
    std::vector<int> boundary(draw(0, 2), 2);
    if (!boundary.empty() && oneIn(3))
      boundary[0] = 3;
    int links = draw(1, 3);
    int infinityOneIn = oneIn(2) ? 6 : 0;
    bool shares = oneIn(2);
    for (int l = 0; l < links; ++l) {
      Link link;
      link.repeat = links == 1 || (l == 1 && oneIn(2)) ? draw(1, 4) : 1;
      std::vector<int> domains;
      auto variable = [&domains](int domain) {
        domains.push_back(domain);
        return static_cast<int>(domains.size()) - 1;
      };
      for (int domain : boundary)
        link.in.push_back(variable(domain));
      for (std::size_t b = 0; b < boundary.size(); ++b)
        link.out.push_back(oneIn(4) ? link.in[b] : variable(boundary[b]));
      int inner = link.repeat > 1 ? draw(0, 1) : draw(0, 3);
      if (boundary.empty())
        ++inner;
      for (int i = 0; i < inner; ++i)
        variable(draw(1, 3));
      if (shares && (link.repeat == 1 || oneIn(2))) {
        link.shared.emplace_back(variable(2), 7);
        if (!boundary.empty() && boundary.back() == 2 && oneIn(4))
          link.shared.emplace_back(link.in.back(), 3);
      }
      int tables = draw(1, static_cast<int>(domains.size()) + 2);
      link.problem = problem(domains, tables, infinityOneIn);
      result.links.push_back(std::move(link));
    }
    return result;
  }

  std::mt19937_64 random;
};

} // namespace mtplan::planner

#endif // MTPLAN_TESTS_PLANNER_SOLVE_RANDOM_CHAIN_H
