//===- parity_test.cpp - Random plans compute what the model does ---------===//
//
// Draws random plans over all axes (drawn_plan.h) and compares each with the
// model on one rank (parity.h).
//
//===----------------------------------------------------------------------===//

#include <cstdlib>

#include <gtest/gtest.h>

#include "tests/executable/parity/parity.h"

namespace mtplan::passes {
namespace {

class ExecutablePlan : public ::testing::TestWithParam<Family> {};

TEST_P(ExecutablePlan, ComputesWhatTheModelDoes) {
  const int runs = std::getenv("MTPLAN_TEST_ALL") ? 100 : 8;
  Family family = GetParam();
  if (family.layers > 0)
    family.layers = 4;
  const bool hasExperts = family.splits.contains("expert");
  const int layers = planner::layersOf(Step(family, 1, 1).graph);
  Random random = randomOf(family, 7);
  for (int i = 0; i < runs; ++i) {
    Drawn drawn = draw(random, hasExperts, layers, /*twoTensorAxes=*/true);
    SCOPED_TRACE(textOf(drawn));
    expectParity(family, drawn);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, ExecutablePlan,
                         ::testing::ValuesIn(families()));

} // namespace
} // namespace mtplan::passes
