//===- strategy_test.cpp - Legal strategies and their layouts -------------===//

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "planner/graph/strategy.h"

using namespace mtplan::planner;

namespace {

// The layer Y[t, o] = X[t, i] W[i, o] + B[o] is linear in (X, B) and in W.
enum : int { kT, kI, kO };
Op linearLayer(std::int64_t t = 16, std::int64_t i = 8, std::int64_t o = 24) {
  Op op;
  op.name = "fc";
  op.opClass = OpClass::gemm;
  op.factors = {{"t", t, Split::batch, true, Reduction::sum, 0.0},
                {"i", i, Split::row, true, Reduction::sum, 0.0},
                {"o", o, Split::column, true, Reduction::sum, 0.0}};
  op.operands = {{0, {kT, kI}}, {1, {kI, kO}}, {2, {kO}}};
  op.results = {{3, {kT, kO}}};
  op.addends = {2};
  op.linearGroups = {{0, 2}};
  return op;
}

const Mesh kTwoAxes{{{"dp", 2}, {"tp", 4}}};
const AxisRule kAny{{Split::batch, Split::row, Split::column}, true};

TEST(StrategiesOf, ReplicatedFirstThenFactorsThenLinearGroups) {
  Mesh mesh{{{"tp", 4}}};
  std::vector<Strategy> found = strategiesOf(linearLayer(), mesh, {kAny});
  std::vector<Strategy> expected{
      {{kReplicated}}, {{kT}}, {{kI}}, {{kO}}, {{kLinear}}};
  EXPECT_EQ(found, expected);
}

TEST(StrategiesOf, ASplitThatIsNotInTheRuleIsNotTaken) {
  Mesh mesh{{{"tp", 4}}};
  std::vector<Strategy> found =
      strategiesOf(linearLayer(), mesh, {{{Split::column}, true}});
  EXPECT_EQ(found,
            (std::vector<Strategy>{{{kReplicated}}, {{kO}}, {{kLinear}}}));
}

TEST(StrategiesOf, AFactorThatDoesNotDivideIsNotTaken) {
  // t = 6 and i = 10 are not divisible by 4, but o = 12 is.
  Mesh mesh{{{"tp", 4}}};
  std::vector<Strategy> found =
      strategiesOf(linearLayer(6, 10, 12), mesh, {kAny});
  EXPECT_EQ(found,
            (std::vector<Strategy>{{{kReplicated}}, {{kO}}, {{kLinear}}}));
  Op rigid = linearLayer();
  rigid.factors[kO].divisible = false;
  for (const Strategy &strategy : strategiesOf(rigid, mesh, {kAny}))
    EXPECT_NE(strategy.axes[0], kO);
}

TEST(StrategiesOf, TwoAxesOnOneFactorDivideTogether) {
  // 12 is divisible by 2 and by 4 but not by 8.
  Op op = linearLayer(16, 8, 12);
  for (const Strategy &strategy : strategiesOf(op, kTwoAxes, {kAny, kAny}))
    EXPECT_NE(strategy, (Strategy{{kO, kO}}));
  std::vector<Strategy> wide =
      strategiesOf(linearLayer(), kTwoAxes, {kAny, kAny});
  EXPECT_NE(std::ranges::find(wide, Strategy{{kO, kO}}), wide.end());
  EXPECT_EQ(wide.front(), (Strategy{{kReplicated, kReplicated}}));
  // Each axis has 5 choices. 16, 8 and 24 are divisible by 8 ranks, so all
  // pairs are legal.
  EXPECT_EQ(wide.size(), 25u);
}

TEST(StrategiesOf, AnAxisIsReplicatedWithoutPermissionOnlyIfNothingElseFits) {
  AxisRule batchOnly{{Split::batch}, false};
  Mesh mesh{{{"dp", 2}}};
  EXPECT_EQ(strategiesOf(linearLayer(), mesh, {batchOnly}),
            (std::vector<Strategy>{{{kT}}}));
  EXPECT_EQ(strategiesOf(linearLayer(3), mesh, {batchOnly}),
            (std::vector<Strategy>{{{kReplicated}}, {{kLinear}}}));
}

TEST(StrategiesOf, AnAxisOfOneRankHasNothingToChoose) {
  Mesh mesh{{{"tp", 1}}};
  EXPECT_EQ(strategiesOf(linearLayer(), mesh, {kAny}),
            (std::vector<Strategy>{{{kReplicated}}}));
}

TEST(StrategiesOf, AValueIsNotASumAndAMaximumAtOnce) {
  // m[t] is a maximum over i of a sum over o, and the result has neither
  // factor.
  Op op = linearLayer();
  op.factors[kI].reduction = Reduction::max;
  op.results = {{3, {kT}}};
  op.addends.clear();
  op.linearGroups.clear();
  std::vector<Strategy> found = strategiesOf(op, kTwoAxes, {kAny, kAny});
  EXPECT_EQ(std::ranges::find(found, Strategy{{kI, kO}}), found.end());
  EXPECT_EQ(std::ranges::find(found, Strategy{{kO, kI}}), found.end());
  EXPECT_NE(std::ranges::find(found, Strategy{{kI, kI}}), found.end());
  EXPECT_NE(std::ranges::find(found, Strategy{{kO, kT}}), found.end());
}

TEST(LayoutsOf, ColumnSplit) {
  Op op = linearLayer();
  Strategy column{{kReplicated, kO}};
  EXPECT_EQ(operandLayout(op, column, 0), Layout::replicated(2));
  EXPECT_EQ(operandLayout(op, column, 1), (Layout{{{}, {1}}, {}}));
  EXPECT_EQ(operandLayout(op, column, 2), (Layout{{{1}}, {}}));
  EXPECT_EQ(resultLayout(op, column, 0), (Layout{{{}, {1}}, {}}));
}

TEST(LayoutsOf, RowSplitLeavesASumAndTakesThePartialBias) {
  Op op = linearLayer();
  Strategy row{{kT, kI}};
  EXPECT_EQ(operandLayout(op, row, 0), (Layout{{{0}, {1}}, {}}));
  EXPECT_EQ(operandLayout(op, row, 1), (Layout{{{1}, {}}, {}}));
  EXPECT_EQ(operandLayout(op, row, 2), (Layout{{{}}, {1}}));
  EXPECT_EQ(resultLayout(op, row, 0), (Layout{{{0}, {}}, {1}}));
}

TEST(LayoutsOf, TwoAxesOfOneFactorAreAscending) {
  Op op = linearLayer();
  EXPECT_EQ(resultLayout(op, {{kO, kO}}, 0), (Layout{{{}, {0, 1}}, {}}));
}

TEST(LayoutsOf, ALinearGroupPassesPartialValuesThrough) {
  Op op = linearLayer();
  Strategy linear{{kT, kLinear}};
  EXPECT_EQ(operandLayout(op, linear, 0), (Layout{{{0}, {}}, {1}}));
  EXPECT_EQ(operandLayout(op, linear, 1), Layout::replicated(2));
  EXPECT_EQ(operandLayout(op, linear, 2), (Layout{{{}}, {1}}));
  EXPECT_EQ(resultLayout(op, linear, 0), (Layout{{{0}, {}}, {1}}));
}

TEST(LayoutsOf, ASecondGroupIsAnotherChoice) {
  Op op = linearLayer();
  op.operands.pop_back();
  op.addends.clear();
  op.linearGroups = {{0}, {1}};
  Strategy second{{kReplicated, kLinear - 1}};
  EXPECT_EQ(operandLayout(op, second, 0), Layout::replicated(2));
  EXPECT_EQ(operandLayout(op, second, 1), (Layout{{{}, {}}, {1}}));
}

TEST(LayoutsOf, AMaximumIsPartialAsAMaximum) {
  Op op = linearLayer();
  op.factors[kI].reduction = Reduction::max;
  EXPECT_EQ(resultLayout(op, {{kReplicated, kI}}, 0),
            (Layout{{{}, {}}, {1}, Reduction::max}));
  // Only a sum makes an addend partial; a maximum does not.
  EXPECT_EQ(operandLayout(op, {{kReplicated, kI}}, 2), Layout::replicated(1));
}

// A strategy is right if every rank can compute its shard of the product from
// its shards of the operands. The test counts multiplications: all ranks
// together have those of the layer, times the number of ranks that repeat the
// same work.
TEST(LayoutsOf, RanksTogetherDoTheWholeWork) {
  Op op = linearLayer();
  std::vector<std::int64_t> x{16, 8}, w{8, 24}, y{16, 24};
  for (const Strategy &s : strategiesOf(op, kTwoAxes, {kAny, kAny})) {
    std::int64_t repeated = 1;
    for (std::size_t a = 0; a < 2; ++a)
      if (s.axes[a] < 0)
        repeated *= kTwoAxes.axes[a].size;
    auto localX = localShape(x, operandLayout(op, s, 0), kTwoAxes);
    auto localW = localShape(w, operandLayout(op, s, 1), kTwoAxes);
    auto localY = localShape(y, resultLayout(op, s, 0), kTwoAxes);
    EXPECT_EQ(localX[1], localW[0]);
    EXPECT_EQ(localX[0], localY[0]);
    EXPECT_EQ(localW[1], localY[1]);
    EXPECT_EQ(localX[0] * localX[1] * localW[1] * kTwoAxes.ranks(),
              16 * 8 * 24 * repeated);
  }
}

TEST(Describe, UsesCommonTerms) {
  Op op = linearLayer();
  EXPECT_EQ(describe(op, {{kReplicated, kO}}, kTwoAxes), "column");
  EXPECT_EQ(describe(op, {{kT, kO}}, kTwoAxes), "batch + column");
  EXPECT_EQ(describe(op, {{kReplicated, kReplicated}}, kTwoAxes), "replicated");
  EXPECT_EQ(describe(op, {{kT, kLinear}}, kTwoAxes), "batch + partial");
  EXPECT_EQ(describe(op, {{kT, kO}}, Mesh{{{"dp", 1}, {"tp", 4}}}), "column");
}

} // namespace
