//===- few_shot_test.cpp - Sources learnt from a few runs -----------------===//

#include <cmath>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/command/command.h"
#include "tools/validate/few_shot.h"
#include "tools/validate/validate_command.h"

namespace mtplan::tools {
namespace {

using testing::HasSubstr;

// Returns the rows of a file whose source contains `source`.
std::vector<RunRow> rowsOf(const char *name, const char *source) {
  std::ifstream file(std::string(MTPLAN_SOURCE_DIR "/docs/accuracy/") + name);
  std::ostringstream text;
  text << file.rdbuf();
  std::vector<std::string> errors;
  std::vector<RunRow> rows = readRows(text.str(), errors);
  EXPECT_TRUE(errors.empty());
  std::erase_if(rows,
                [&](const RunRow &row) { return !row.sourceHas(source); });
  return rows;
}

std::vector<RunRow> nanotronRows() {
  std::vector<RunRow> rows = rowsOf("throughput-2.csv", "nanotron");
  std::erase_if(rows, [](const RunRow &row) { return row.gpus > 128; });
  return rows;
}

ErrorSummary errorsOf(const std::vector<PricedRow> &rows) {
  return summaryOf(pricedRows(rows));
}

FewShot learn(std::size_t count, const std::string &base) {
  const std::vector<FewShot> all = fewShot(nanotronRows(), count, base);
  EXPECT_EQ(all.size(), 1U);
  return all.empty() ? FewShot{} : all.front();
}

// Ten runs of the small model on 8 and 16 GPUs predict all other runs up to 128
// GPUs.
TEST(FewShot, TenRunsPredictTheOthers) {
  const FewShot source = learn(10, "");
  EXPECT_EQ(source.base, "nanotron");
  ASSERT_EQ(source.learnt.size(), 10U);
  EXPECT_EQ(source.predicted.size(), 333U);
  for (const PricedRow &row : source.learnt) {
    EXPECT_LE(row.row.gpus, 16);
    EXPECT_EQ(row.row.parametersB, 1.34);
  }
  EXPECT_LE(errorsOf(source.predicted).mean, 0.14);
  EXPECT_LE(errorsOf(source.predicted).median, 0.08);
  const ChoiceSummary choice = choiceSummaryOf(source.predicted);
  EXPECT_EQ(choice.groups, 10U);
  EXPECT_GE(choice.spearman, 0.92);
  EXPECT_LE(choice.meanRegret, 0.02);
  EXPECT_LE(choice.worstRegret, 0.10);
  EXPECT_THAT(fewShotText({source}),
              HasSubstr("10 rows learnt, from nanotron"));
}

// The fit may also start from software of which only the launch times are known
// roughly. The limits of the regret are what is reached, not what is asked.
TEST(FewShot, TenRunsPredictTheOthersFromOtherSoftware) {
  const FewShot source = learn(10, "pytorch-eager");
  EXPECT_LE(errorsOf(source.predicted).mean, 0.14);
  EXPECT_LE(errorsOf(source.predicted).median, 0.08);
  const ChoiceSummary choice = choiceSummaryOf(source.predicted);
  EXPECT_GE(choice.spearman, 0.92);
  EXPECT_LE(choice.meanRegret, 0.025);
  EXPECT_LE(choice.worstRegret, 0.13);
}

TEST(FewShot, NoRunPredictsTheOrder) {
  const std::vector<PricedRow> rows = learn(0, "pytorch-eager").predicted;
  EXPECT_EQ(rows.size(), 343U);
  EXPECT_LE(errorsOf(rows).mean, 0.17);
  EXPECT_GE(choiceSummaryOf(rows).spearman, 0.94);
  EXPECT_LE(choiceSummaryOf(rows).meanRegret, 0.03);
}

TEST(FewShot, TheCommandRefusesOtherOutputs) {
  const std::string csv = MTPLAN_SOURCE_DIR "/docs/accuracy/throughput-2.csv";
  std::ostringstream out, err;
  EXPECT_EQ(runValidate({csv, "--few-shot", "3", "--json"}, out, err),
            kBadInput);
  EXPECT_EQ(err.str(), "error: --few-shot prints tables: give it without "
                       "--json, --report, --svg and --beat\n");
  err.str("");
  EXPECT_EQ(runValidate({csv, "--software", "nobody"}, out, err), kBadInput);
  EXPECT_THAT(err.str(), HasSubstr("no software file \"nobody\""));
  out.str("");
  EXPECT_EQ(runValidate({csv, "--few-shot", "0", "--only", "nanotron_sweep-1"},
                        out, err),
            kDone);
  EXPECT_THAT(out.str(), HasSubstr("0 rows learnt, from nanotron\n"));
}

// Two presets price the runs of one paper.
TEST(FewShot, SoftwareIsLearntApart) {
  const std::vector<FewShot> all =
      fewShot(rowsOf("throughput.csv", "SC21"), 2, "");
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].base, "deepspeed-2021");
  EXPECT_EQ(all[1].base, "megatron-2021");
  for (const FewShot &one : all) {
    EXPECT_EQ(one.learnt.size(), 2U);
    for (const PricedRow &row : one.predicted)
      EXPECT_EQ(row.software, one.base);
  }
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
