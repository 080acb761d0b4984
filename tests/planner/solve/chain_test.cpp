//===- chain_test.cpp - Chains against exhaustive search --------*- C++ -*-===//

#include <algorithm>
#include <stdexcept>

#include <gtest/gtest.h>

#include "planner/solve/chain_solver.h"
#include "planner/solve/factor_graph.h"
#include "tests/planner/solve/exhaustive.h"
#include "tests/planner/solve/random_chain.h"

namespace mtplan::planner {
namespace {

void expectSameRuns(const ChainSolution &a, const ChainSolution &b) {
  ASSERT_EQ(a.runs.size(), b.runs.size());
  for (std::size_t i = 0; i < a.runs.size(); ++i) {
    EXPECT_EQ(a.runs[i].link, b.runs[i].link);
    EXPECT_EQ(a.runs[i].count, b.runs[i].count);
    EXPECT_EQ(a.runs[i].assignment, b.runs[i].assignment);
  }
}

/// Compares all parts of `solution` that do not depend on ties with `expected`.
void expectAgrees(const ChainProblem &chain, const ChainSolution &solution,
                  const ChainSolution &expected) {
  ASSERT_EQ(solution.feasible, expected.feasible);
  ASSERT_EQ(solution.runs.empty(), expected.runs.empty());
  EXPECT_FALSE(solution.abandoned);
  if (expected.runs.empty()) {
    EXPECT_EQ(solution.cost.time, kInfinity);
    return;
  }
  Cost cost = costOf(chain, solution.runs);
  EXPECT_EQ(solution.cost.time, cost.time);
  EXPECT_EQ(solution.cost.memory, cost.memory);
  if (!expected.feasible) {
    EXPECT_EQ(cost.memory, expected.cost.memory);
    EXPECT_EQ(solution.lowerBound, kInfinity);
    return;
  }
  EXPECT_TRUE(solution.optimal);
  EXPECT_EQ(cost.time, expected.cost.time);
  EXPECT_LE(cost.memory, chain.memoryLimit);
  EXPECT_NEAR(solution.lowerBound, cost.time, 1e-9 * cost.time);
}

TEST(SolveChain, EqualsExhaustiveSearchOnRandomChains) {
  int infeasible = 0;
  int illegal = 0;
  int binding = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    RandomChain random(seed);
    ChainProblem chain = random.chain();
    ASSERT_TRUE(check(chain).empty()) << check(chain).front();
    ChainSolution fastest = solveChainExhaustively(chain);
    expectAgrees(chain, solveChain(chain), fastest);
    if (!fastest.feasible) {
      ++illegal;
      continue;
    }
    chain.memoryLimit = -1.0; // infeasible: the least memory is returned
    ChainSolution smallest = solveChainExhaustively(chain);
    ASSERT_FALSE(smallest.feasible);
    double least = smallest.cost.memory;
    ChainSolver solver(chain);
    for (int limit = 0; limit < 5; ++limit) {
      SCOPED_TRACE(limit);
      chain.memoryLimit =
          least - 1.0 + (fastest.cost.memory + 1.0 - least) * limit / 4.0;
      ChainSolution expected = solveChainExhaustively(chain);
      ChainSolution solution = solver.solve(chain);
      expectAgrees(chain, solution, expected);
      expectSameRuns(solution, solveChain(chain));
      infeasible += expected.feasible ? 0 : 1;
      binding += expected.cost.time > fastest.cost.time ? 1 : 0;
    }
    if (HasFatalFailure())
      return;
  }
  // The random cases reach every branch.
  EXPECT_GT(infeasible, 2000);
  EXPECT_GT(binding, 2000);
  EXPECT_GT(illegal, 100);
}

TEST(SolveChain, EqualsExhaustiveSearchOnRepeatedLinks) {
  int checkedLimits = 0;
  for (unsigned seed = 10000; seed < 10400; ++seed) {
    SCOPED_TRACE(seed);
    RandomChain random(seed);
    ChainProblem chain = random.chain(100e3);
    bool repeats = false;
    for (const Link &link : chain.links)
      repeats |= link.repeat >= 3;
    ChainSolution fastest = solveChain(chain);
    if (!repeats || !fastest.feasible)
      continue;
    chain.memoryLimit = -1.0;
    double least = solveChain(chain).cost.memory;
    for (double part : {0.2, 0.5, 0.8}) {
      chain.memoryLimit = least + part * (fastest.cost.memory - least);
      expectAgrees(chain, solveChain(chain), solveChainExhaustively(chain));
      ++checkedLimits;
    }
    if (HasFatalFailure())
      return;
  }
  EXPECT_GT(checkedLimits, 200);
}

TEST(SolveChain, EqualsExhaustiveSearchUpToRoundingOnFractions) {
  for (unsigned seed = 20000; seed < 20400; ++seed) {
    SCOPED_TRACE(seed);
    RandomChain random(seed);
    ChainProblem chain = random.chain(5e3);
    for (Link &link : chain.links)
      for (CostTable &table : link.problem.tables)
        for (double &time : table.time)
          time *= 1e-5 / 3.0;
    ChainSolution fastest = solveChainExhaustively(chain);
    chain.memoryLimit = fastest.feasible ? 0.75 * fastest.cost.memory : 10.0;
    ChainSolution expected = solveChainExhaustively(chain);
    ChainSolution solution = solveChain(chain);
    ASSERT_EQ(solution.feasible, expected.feasible);
    if (!expected.feasible)
      continue;
    EXPECT_TRUE(solution.optimal);
    EXPECT_NEAR(solution.cost.time, expected.cost.time,
                1e-9 * expected.cost.time);
    EXPECT_LE(solution.cost.memory, chain.memoryLimit);
  }
}

TEST(SolveChain, RepeatsDivideAMemoryLimit) {
  // One variable in 3 repeats has the costs (1, 10), (3, 5) and (9, 1), in
  // seconds and bytes. Within 16 bytes, one of each takes 13 s, but three times
  // the middle one takes 9 s and 15 bytes.
  ChainProblem chain;
  Link link;
  link.problem.domains = {3};
  link.problem.tables.push_back({{0}, {1, 3, 9}, {10, 5, 1}});
  link.repeat = 3;
  chain.links.push_back(link);
  auto timeWithin = [&chain](double limit) {
    chain.memoryLimit = limit;
    ChainSolution solution = solveChain(chain);
    EXPECT_TRUE(solution.optimal);
    return solution.cost.time;
  };
  EXPECT_EQ(timeWithin(30), 3);
  EXPECT_EQ(timeWithin(29), 5);  // 1 + 1 + 3
  EXPECT_EQ(timeWithin(20), 7);  // 1 + 3 + 3
  EXPECT_EQ(timeWithin(16), 9);  // 3 + 3 + 3
  EXPECT_EQ(timeWithin(14), 15); // 3 + 3 + 9
  EXPECT_EQ(timeWithin(3), 27);
  chain.memoryLimit = 2;
  ChainSolution solution = solveChain(chain);
  EXPECT_FALSE(solution.feasible);
  EXPECT_EQ(solution.cost.memory, 3);
  ASSERT_EQ(solution.runs.size(), 1);
  EXPECT_EQ(solution.runs[0].count, 3);
  EXPECT_EQ(solution.runs[0].assignment, (Assignment{2}));
}

TEST(SolveChain, EqualRepeatsBecomeOneRun) {
  // The fast choice takes 4 bytes, the slow one 1 byte. Within 100 bytes, 20 of
  // 40 repeats are fast.
  ChainProblem chain;
  Link link;
  link.problem.domains = {2, 2, 2};
  link.in = {0};
  link.out = {1};
  link.problem.tables.push_back({{2}, {1, 2}, {4, 1}});
  link.problem.tables.push_back({{0, 1}, {0, 5, 5, 0}, {}});
  link.repeat = 40;
  chain.links.push_back(link);
  chain.memoryLimit = 100;
  ChainSolution solution = solveChain(chain);
  EXPECT_TRUE(solution.optimal);
  EXPECT_EQ(solution.cost.time, 20 * 1 + 20 * 2);
  ASSERT_EQ(solution.runs.size(), 2);
  EXPECT_EQ(solution.runs[0].count, 20);
  EXPECT_EQ(solution.runs[1].count, 20);
}

TEST(SolveChain, RunsGroupEqualRepeatsThatMayMove) {
  Link link;
  link.problem.domains = {2, 2, 2}; // in, out, inner
  link.in = {0};
  link.out = {1};
  link.repeat = 7;
  Assignment a = {0, 0, 0};
  Assignment b = {0, 0, 1};
  Assignment change = {0, 1, 0};
  Assignment after = {1, 1, 0};
  auto runs = runsOf({link}, std::vector<int>(7, 0),
                     {a, b, a, b, change, after, after});
  ASSERT_EQ(runs.size(), 4);
  EXPECT_EQ(runs[0].assignment, a);
  EXPECT_EQ(runs[0].count, 2);
  EXPECT_EQ(runs[1].assignment, b);
  EXPECT_EQ(runs[1].count, 2);
  EXPECT_EQ(runs[2].assignment, change);
  EXPECT_EQ(runs[2].count, 1);
  EXPECT_EQ(runs[3].assignment, after);
  EXPECT_EQ(runs[3].count, 2);
}

TEST(SolveChain, PrefersStayingInOneState) {
  // Every transition costs the same, but the next link prefers state 2. The
  // chain is in state 2 from the start, instead of changing to it from state 0.
  ChainProblem chain;
  Link link;
  link.problem.domains = {3, 3, 2};
  link.in = {0};
  link.out = {1};
  link.problem.tables.push_back({{0, 1}, std::vector<double>(9, 0.1), {}});
  link.repeat = 150;
  Link last;
  last.problem.domains = {3};
  last.in = {0};
  last.problem.tables.push_back({{0}, {1, 1, 0}, {}});
  chain.links = {link, last};
  ChainSolution solution = solveChain(chain);
  ASSERT_EQ(solution.runs.size(), 2);
  EXPECT_EQ(solution.runs[0].count, 150);
  EXPECT_EQ(solution.runs[0].assignment, (Assignment{2, 2, 0}));
}

TEST(SolveChain, SharedVariableTakesOneValue) {
  // The first link alone would choose 0, the second 1; for one shared value, 1
  // is cheaper.
  ChainProblem chain;
  for (const std::vector<double> &time : {std::vector<double>{1, 3}, {9, 2}}) {
    Link link;
    link.problem.domains = {2};
    link.problem.tables.push_back({{0}, time, {}});
    link.shared = {{0, 42}};
    chain.links.push_back(link);
  }
  ChainSolution solution = solveChain(chain);
  EXPECT_EQ(solution.cost.time, 5);
  ASSERT_EQ(solution.runs.size(), 2);
  EXPECT_EQ(solution.runs[0].assignment, (Assignment{1}));
  EXPECT_EQ(solution.runs[1].assignment, (Assignment{1}));
}

TEST(SolveChain, GivesUpExactlyWhenTheOptimumIsTooSlow) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    RandomChain random(seed);
    ChainProblem chain = random.chain();
    ChainSolution fastest = solveChain(chain);
    if (!fastest.feasible)
      continue;
    chain.memoryLimit = fastest.cost.memory * 0.7;
    ChainSolution solution = solveChain(chain);
    if (!solution.feasible)
      continue;
    ChainSolver solver(chain);
    SolveLimits limits;
    limits.stopAbove = solution.cost.time + 0.5;
    ChainSolution same = solver.solve(chain, limits);
    EXPECT_FALSE(same.abandoned);
    EXPECT_EQ(same.cost.time, solution.cost.time);
    EXPECT_TRUE(same.optimal);
    limits.stopAbove = solution.cost.time - 0.5;
    ChainSolution none = solver.solve(chain, limits);
    EXPECT_TRUE(none.abandoned);
    EXPECT_FALSE(none.feasible);
    EXPECT_TRUE(none.runs.empty());
    EXPECT_GE(none.lowerBound, limits.stopAbove * (1 - 1e-12));
    EXPECT_LE(none.lowerBound, solution.cost.time * (1 + 1e-9));
  }
}

TEST(SolveChain, BoundHoldsWhereverTheBudgetEnds) {
  int open = 0;
  int raised = 0; // bounds that gap closing raised before the budget ended
  for (unsigned seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    RandomChain random(seed);
    ChainProblem chain = random.chain();
    ChainSolution fastest = solveChain(chain);
    if (!fastest.feasible)
      continue;
    chain.memoryLimit = fastest.cost.memory * 0.8;
    ChainSolution optimum = solveChain(chain);
    double dualBound = 0.0;
    for (int points : {0, 40, 80, 120, 200, 300}) {
      SolveLimits limits;
      limits.points = points;
      ChainSolution rough = ChainSolver(chain).solve(chain, limits);
      ASSERT_EQ(rough.feasible, optimum.feasible);
      if (!rough.feasible)
        continue;
      dualBound = points == 0 ? rough.lowerBound : dualBound;
      open += rough.optimal ? 0 : 1;
      raised += !rough.optimal && rough.lowerBound > dualBound ? 1 : 0;
      EXPECT_LE(rough.lowerBound, optimum.cost.time * (1 + 1e-9));
      EXPECT_GE(rough.cost.time, optimum.cost.time);
      EXPECT_LE(rough.cost.memory, chain.memoryLimit);
      if (rough.optimal) {
        EXPECT_EQ(rough.cost.time, optimum.cost.time);
      }
    }
  }
  EXPECT_GT(open, 100);
  EXPECT_GT(raised, 20);
}

TEST(SolveChain, ReuseDoesNotChangeTheAnswer) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    RandomChain random(seed);
    ChainProblem chain = random.chain();
    ChainSolver solver(chain);
    for (int round = 0; round < 4; ++round) {
      for (Link &link : chain.links)
        for (CostTable &table : link.problem.tables)
          table = random.table(link.problem.domains, table.scope,
                               round % 2 == 0 ? 9 : 0);
      chain.memoryLimit = random.draw(10, 120);
      ChainSolution reused = solver.solve(chain);
      ChainSolution fresh = solveChain(chain);
      EXPECT_EQ(reused.cost.time, fresh.cost.time);
      EXPECT_EQ(reused.lowerBound, fresh.lowerBound);
      expectSameRuns(reused, fresh);
    }
  }
}

TEST(SolveChain, RejectsAnotherShape) {
  RandomChain random(3);
  ChainProblem chain = random.chain();
  ChainSolver solver(chain);
  chain.links[0].problem.domains.push_back(2);
  EXPECT_THROW(solver.solve(chain), std::invalid_argument);
  chain.links.clear();
  EXPECT_THROW(solver.solve(chain), std::invalid_argument);
  EXPECT_THROW(solveChain(chain), std::invalid_argument);
}

TEST(SolveChain, CostOfRunsRejectsWhatDoesNotFit) {
  ChainProblem chain;
  Link link;
  link.problem.domains = {2, 2};
  link.problem.tables.push_back({{0, 1}, {1, 2, 3, 4}, {1, 1, 1, 1}});
  link.in = {0};
  link.out = {1};
  link.repeat = 3;
  chain.links.push_back(link);
  EXPECT_EQ(costOf(chain, {{0, 2, {0, 0}}, {0, 1, {0, 1}}}).time, 1 + 1 + 2);
  EXPECT_EQ(costOf(chain, {{0, 2, {0, 0}}, {0, 1, {0, 1}}}).memory, 3);
  EXPECT_EQ(costOf(chain, {{0, 3, {0, 1}}}).time, kInfinity);
  EXPECT_EQ(costOf(chain, {{0, 2, {0, 0}}, {0, 1, {1, 1}}}).time, kInfinity);
  EXPECT_EQ(costOf(chain, {{0, 2, {0, 0}}}).time, kInfinity);
  EXPECT_EQ(costOf(chain, {{0, 3, {2, 2}}}).time, kInfinity);

  Link free;
  free.problem.domains = {2};
  chain.links = {free, free};
  EXPECT_EQ(costOf(chain, {{0, 1, {0}}, {1, 1, {1}}}).time, 0);
  EXPECT_EQ(costOf(chain, {{1, 1, {0}}, {0, 1, {1}}}).time, kInfinity);
  chain.links[0].shared = chain.links[1].shared = {{0, 5}};
  EXPECT_EQ(costOf(chain, {{0, 1, {0}}, {1, 1, {1}}}).time, kInfinity);
  EXPECT_EQ(costOf(chain, {{0, 1, {1}}, {1, 1, {1}}}).time, 0);
}

TEST(SolveChain, NamesBrokenPromises) {
  ChainProblem chain;
  Link link;
  link.problem.domains = {2, 3};
  link.in = {0};
  link.out = {1};
  chain.links = {link, link};
  EXPECT_EQ(check(chain), (std::vector<std::string>{
                              "links 0 and 1: the out variables of the first "
                              "do not match the in variables of the second"}));
  chain.links.pop_back();
  chain.links[0].shared = {{0, 1}, {1, 1}};
  EXPECT_EQ(check(chain), (std::vector<std::string>{
                              "link 0: shared id 1 has another domain here"}));
  chain.links[0].shared = {{2, 1}};
  EXPECT_EQ(check(chain), (std::vector<std::string>{
                              "link 0: shared variable 2 does not exist"}));
  chain.links.clear();
  EXPECT_EQ(check(chain), (std::vector<std::string>{"the chain has no links"}));
}

} // namespace
} // namespace mtplan::planner
