//===- elimination_test.cpp - Elimination against brute force ---*- C++ -*-===//

#include <algorithm>
#include <map>
#include <random>
#include <stdexcept>

#include <gtest/gtest.h>

#include "planner/solve/elimination.h"
#include "planner/solve/elimination_plan.h"
#include "tests/planner/solve/random_chain.h"

namespace mtplan::planner {
namespace {

/// Returns the least objective of each combination of kept values, by brute
/// force.
std::map<std::vector<int>, double> leastOf(const Problem &problem,
                                           const std::vector<int> &keep,
                                           Objective objective) {
  std::map<std::vector<int>, double> least;
  Assignment assignment(problem.domains.size(), 0);
  for (bool more = true; more;) {
    std::vector<int> kept;
    kept.reserve(keep.size());
    for (int variable : keep)
      kept.push_back(assignment[variable]);
    Cost cost = costOf(problem, assignment);
    double value = objective.of(cost.time, cost.memory);
    auto [at, isNew] = least.emplace(kept, value);
    at->second = std::min(at->second, value);
    more = false;
    for (std::size_t v = assignment.size(); v-- > 0 && !more;) {
      more = ++assignment[v] < problem.domains[v];
      if (!more)
        assignment[v] = 0;
    }
  }
  return least;
}

void expectMatches(Elimination &elimination, const Problem &problem,
                   const std::vector<int> &keep, Objective objective) {
  auto least = leastOf(problem, keep, objective);
  bool legal = elimination.prepare(problem);
  if (legal)
    elimination.run(problem, objective);
  std::size_t entry = 0;
  const EliminationProgram &program = elimination.program();
  for (const auto &[kept, value] : least) { // in row-major order
    bool live = legal;
    for (std::size_t k = 0; legal && k < keep.size(); ++k) {
      const std::vector<int> &values = program.live[keep[k]];
      live = live &&
             std::find(values.begin(), values.end(), kept[k]) != values.end();
    }
    if (!live) {
      EXPECT_EQ(value, kInfinity);
      continue;
    }
    ASSERT_LT(entry, elimination.tableSize());
    EXPECT_EQ(elimination.table()[entry++], value);
    Assignment assignment = elimination.decode(kept);
    ASSERT_EQ(assignment.empty(), value == kInfinity);
    if (assignment.empty())
      continue;
    Cost cost = costOf(problem, assignment);
    EXPECT_EQ(objective.of(cost.time, cost.memory), value);
    for (std::size_t k = 0; k < keep.size(); ++k)
      EXPECT_EQ(assignment[keep[k]], kept[k]);
  }
  if (legal) {
    EXPECT_EQ(entry, elimination.tableSize());
  }
}

TEST(SolveElimination, EqualsBruteForceOnRandomProblems) {
  for (unsigned seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    RandomChain random(seed);
    std::vector<int> domains(random.draw(1, 7));
    for (int &domain : domains)
      domain = random.draw(1, 4);
    std::vector<int> keep;
    for (std::size_t v = 0; v < domains.size(); ++v)
      if (random.oneIn(3))
        keep.insert(keep.begin() +
                        random.draw(0, static_cast<int>(keep.size())),
                    static_cast<int>(v));
    Problem problem = random.problem(domains, random.draw(0, 12),
                                     random.oneIn(2) ? random.draw(3, 9) : 0);
    Elimination elimination(problem, keep);
    expectMatches(elimination, problem, keep, {1.0, 0.0});
    expectMatches(elimination, problem, keep, {1.0, 0.5});
    expectMatches(elimination, problem, keep, {0.0, 1.0});

    // The structure stays, but numbers and infinities change.
    for (CostTable &table : problem.tables)
      table = random.table(problem.domains, table.scope, 8);
    expectMatches(elimination, problem, keep, {1.0, 0.25});
  }
}

TEST(SolveElimination, LongRowsUseEveryPartOfTheKernel) {
  // Rows of 7 * 11 = 77 entries use chunks, groups of four and single entries.
  RandomChain random(5);
  Problem problem;
  problem.domains = {5, 3, 7, 11};
  for (const std::vector<int> &scope : {std::vector<int>{0, 1, 2, 3},
                                        {0, 2, 3},
                                        {3, 0},
                                        {0, 1},
                                        {2, 0, 1},
                                        {0}})
    problem.tables.push_back(random.table(problem.domains, scope, 0));
  for (const std::vector<int> &keep :
       {std::vector<int>{1, 2, 3}, {3, 1, 2}, {2}}) {
    Elimination elimination(problem, keep);
    expectMatches(elimination, problem, keep, {1.0, 2.0});
  }
}

TEST(SolveElimination, DecodesLowestValuesAmongEquals) {
  // All pairs of values cost 4, except (0, 0) with 5 and (1, 1) with 9.
  // Variable 0 is eliminated first, so variable 1 is decoded first, as 0, and
  // then variable 0, as 1.
  Problem problem;
  problem.domains = {3, 3};
  problem.tables.push_back({{0, 1}, {5, 4, 4, 4, 9, 4, 4, 4, 4}, {}});
  Elimination elimination(problem, {});
  ASSERT_TRUE(elimination.prepare(problem));
  elimination.run(problem, {});
  EXPECT_EQ(elimination.table()[0], 4);
  EXPECT_EQ(elimination.decode({}), (Assignment{1, 0}));
}

TEST(SolveElimination, PropagatesInfinitiesBeforeSolving) {
  // The first table requires x = y, and the second y = 2, so each variable has
  // one value left.
  Problem problem;
  problem.domains = {3, 3};
  CostTable equal = {{0, 1}, std::vector<double>(9, kInfinity), {}};
  equal.time[0] = equal.time[4] = equal.time[8] = 1;
  problem.tables = {equal, {{1}, {kInfinity, kInfinity, 0}, {}}};
  EXPECT_EQ(liveValues(problem), (LiveValues{{2}, {2}}));
  problem.tables[0].scope = {1, 0}; // now y is the row index
  EXPECT_EQ(liveValues(problem), (LiveValues{{2}, {2}}));
  problem.tables.push_back({{0}, {0, 0, kInfinity}, {}});
  EXPECT_TRUE(liveValues(problem)[0].empty());
  EXPECT_FALSE(Elimination(problem, {0}).prepare(problem));
}

TEST(SolveElimination, OrderOfATreeHasWidthOne) {
  // The graph is a caterpillar: a spine 0-1-2-3 with one leg each. Eliminating
  // the spine first would create a table of four variables.
  EliminationOrder plan = planElimination(
      {4, 4, 4, 4, 4, 4, 4, 4},
      {{0, 1}, {1, 2}, {2, 3}, {0, 4}, {1, 5}, {2, 6}, {3, 7}}, {});
  // Each joined table but the last has two variables.
  EXPECT_EQ(plan.work, 7 * 16 + 4);
  EXPECT_EQ(plan.order.size(), 8);
}

TEST(SolveElimination, OrderCountsTheTablesItCreates) {
  // In a ring of four, eliminating a variable connects its two neighbours (8
  // entries), so the next variable still has two (8 entries). The last two take
  // 4 and 2 entries.
  EliminationOrder plan =
      planElimination({2, 2, 2, 2}, {{0, 1}, {1, 2}, {2, 3}, {3, 0}}, {});
  EXPECT_EQ(plan.order, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(plan.work, 8 + 8 + 4 + 2);
}

// A variable with two values that shares a table with every other variable at
// most doubles the work, because it can be eliminated last.
TEST(SolveElimination, HubsOfTwoValuesDoubleTheWork) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 50; ++round) {
    constexpr int kOthers = 40;
    std::vector<int> domains;
    std::vector<std::vector<int>> scopes;
    for (int v = 0; v < kOthers; ++v) {
      domains.push_back(3 + static_cast<int>(random() % 8));
      for (int i = 0; v > 0 && i < 2; ++i)
        scopes.push_back(
            {static_cast<int>(random() % static_cast<unsigned>(v)), v});
    }
    const double work = planElimination(domains, scopes, {}).work;
    const int hub = kOthers;
    for (int v = 0; v < kOthers; ++v)
      scopes.push_back({v, hub});
    domains.push_back(2);
    const EliminationOrder plan = planElimination(domains, scopes, {});
    EXPECT_LE(plan.work, 2 * work + 2);
    EXPECT_EQ(plan.order.size(), domains.size());
  }
}

TEST(SolveElimination, RejectsTablesThatWouldNotFit) {
  // Twelve variables of ten values, with a table for each pair, need 10^12
  // entries.
  Problem problem;
  problem.domains.assign(12, 10);
  for (int a = 0; a < 12; ++a)
    for (int b = 0; b < a; ++b)
      problem.tables.push_back({{a, b}, std::vector<double>(100, 1.0), {}});
  Elimination elimination(problem, {});
  EXPECT_THROW(elimination.prepare(problem), std::length_error);
}

TEST(SolveElimination, OrderExcludesKeptVariables) {
  EliminationOrder plan = planElimination({2, 3, 2}, {{0, 1}, {1, 2}}, {1, 1});
  EXPECT_EQ(plan.order, (std::vector<int>{0, 2}));
  EXPECT_EQ(plan.work, 6 + 6);
}

} // namespace
} // namespace mtplan::planner
