//===- factor_graph_test.cpp - Pricing and checking -------*- C++ -*-===//

#include <cmath>

#include <gtest/gtest.h>

#include "planner/solve/factor_graph.h"

namespace mtplan::planner {
namespace {

/// Returns a problem of x in 0..1 and y in 0..2; the second table is over (y,
/// x).
Problem twoVariables() {
  Problem problem;
  problem.domains = {2, 3};
  problem.tables.push_back({{}, {100}, {1000}});
  problem.tables.push_back({{1, 0}, {1, 2, 3, 4, 5, 6}, {}});
  problem.tables.push_back({{0}, {10, 20}, {7, 8}});
  return problem;
}

TEST(SolveFactorGraph, PricesAnAssignmentInScopeOrder) {
  // y = 2, x = 1 is entry 2 * 2 + 1 of the second table.
  Cost cost = costOf(twoVariables(), {1, 2});
  EXPECT_EQ(cost.time, 100 + 6 + 20);
  EXPECT_EQ(cost.memory, 1000 + 8);
  // y = 2, x = 0 is entry 2 * 2.
  EXPECT_EQ(costOf(twoVariables(), {0, 2}).time, 100 + 5 + 10);
}

TEST(SolveFactorGraph, ForbiddenCombinationIsInfinite) {
  Problem problem = twoVariables();
  problem.tables[2].time[1] = kInfinity;
  EXPECT_EQ(costOf(problem, {1, 0}).time, kInfinity);
  EXPECT_EQ(costOf(problem, {0, 0}).time, 100 + 1 + 10);
}

TEST(SolveFactorGraph, SoundProblemHasNoErrors) {
  EXPECT_TRUE(check(twoVariables()).empty());
}

TEST(SolveFactorGraph, NamesEachBrokenPromise) {
  auto firstError = [](auto change) {
    Problem problem = twoVariables();
    change(problem);
    std::vector<std::string> errors = check(problem);
    return errors.size() == 1 ? errors[0] : std::to_string(errors.size());
  };
  EXPECT_EQ(firstError([](Problem &p) { p.domains.push_back(0); }),
            "variable 2: domain is 0, must be at least 1");
  EXPECT_EQ(firstError([](Problem &p) { p.tables[2].scope[0] = 2; }),
            "table 2: variable 2 of its scope does not exist");
  EXPECT_EQ(firstError([](Problem &p) {
              p.tables[1].scope = {0, 0};
            }),
            "table 1: variable 0 occurs twice in its scope");
  EXPECT_EQ(firstError([](Problem &p) { p.tables[1].time.pop_back(); }),
            "table 1: has 5 times, its scope needs 6");
  EXPECT_EQ(firstError([](Problem &p) { p.tables[2].memory.push_back(1); }),
            "table 2: has 3 memory entries, its scope needs 2");
  EXPECT_EQ(firstError([](Problem &p) { p.tables[2].time[0] = std::nan(""); }),
            "table 2: a time is not a number or -infinity");
  EXPECT_EQ(firstError([](Problem &p) { p.tables[2].time[0] = -kInfinity; }),
            "table 2: a time is not a number or -infinity");
  EXPECT_EQ(firstError([](Problem &p) { p.tables[2].memory[0] = kInfinity; }),
            "table 2: a memory entry is not finite");
}

} // namespace
} // namespace mtplan::planner
