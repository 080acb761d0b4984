//===- intervals_test.cpp - Intervals of predicted times ------------------===//

#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/machine/software_json.h"
#include "tests/base/test_helpers.h"
#include "tools/command/command.h"
#include "tools/validate/intervals.h"
#include "tools/validate/validate_command.h"

namespace mtplan::tools {
namespace {

class Intervals : public testing::Test {
protected:
  static const std::vector<PricedRow> &rows() {
    static const std::vector<PricedRow> priced = [] {
      std::vector<RunRow> runs;
      for (const char *name : {"throughput.csv", "throughput-2.csv"}) {
        std::ifstream file(std::string(MTPLAN_SOURCE_DIR "/docs/accuracy/") +
                           name);
        std::ostringstream text;
        text << file.rdbuf();
        std::vector<std::string> errors;
        for (const RunRow &row : readRows(text.str(), errors))
          runs.push_back(row);
        EXPECT_THAT(errors, testing::IsEmpty());
      }
      RowPricer pricer;
      return pricesOf(runs, pricer, Quantity::stepTime);
    }();
    return priced;
  }
};

// Each interval comes from the other runs. 76 to 90 % of all runs are asked to
// be inside, and 65 % of each source. One source of ten or more runs has less:
// NeMo 24.07, with 7 of 11 (64 %).
TEST_F(Intervals, HoldForFourOfFiveRuns) {
  std::size_t inside = 0, all = 0;
  std::vector<std::string> below;
  for (const Coverage &source : coverageOf(rows())) {
    inside += source.inside;
    all += source.rows;
    if (source.rows >= 10 && double(source.inside) < 0.65 * double(source.rows))
      below.push_back(source.source);
  }
  EXPECT_LE(below.size(), 1U) << testing::PrintToString(below);
  EXPECT_GT(all, 900U);
  EXPECT_GE(double(inside), 0.76 * double(all));
  EXPECT_LE(double(inside), 0.90 * double(all));
}

TEST_F(Intervals, ArePartOfThePresets) {
  std::size_t presets = 0;
  for (const auto &[name, list] : accuracyOf(rows())) {
    const planner::Software software = planner::loadSoftware(name);
    ++presets;
    ASSERT_EQ(software.accuracy.size(), list.size()) << name;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const planner::Accuracy &stated = software.accuracy[i];
      EXPECT_EQ(stated.device, list[i].device) << name;
      EXPECT_EQ(stated.runs, list[i].runs) << name;
      EXPECT_EQ(stated.mostDevices, list[i].mostDevices) << name;
      EXPECT_NEAR(stated.low, list[i].low, 0.001) << name;
      EXPECT_NEAR(stated.high, list[i].high, 0.001) << name;
    }
  }
  std::size_t validated = 0;
  for (const std::string &name : planner::softwareNames())
    validated += !planner::loadSoftware(name).accuracy.empty();
  EXPECT_EQ(validated, presets);
}

TEST_F(Intervals, AreTables) {
  const std::string text = intervalsText(rows());
  EXPECT_THAT(text, testing::HasSubstr("inside %"));
  EXPECT_THAT(text, testing::HasSubstr("megatron-2025  "));
}

TEST(IntervalsCommand, TakesSeveralFiles) {
  const std::string folder = MTPLAN_SOURCE_DIR "/docs/accuracy/";
  const auto run = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(),
                 {folder + "throughput.csv", folder + "throughput-2.csv"});
    std::ostringstream out, err;
    const int code = runValidate(flags, out, err);
    return std::pair(code, out.str() + err.str());
  };
  const auto [code, text] =
      run({"--intervals", "--only", "simumax", "--only", "alpa"});
  EXPECT_EQ(code, kDone) << text;
  EXPECT_THAT(text, testing::HasSubstr("SimuMax"));
  EXPECT_THAT(text, testing::HasSubstr("Alpa"));
  EXPECT_EQ(run({"--intervals", "--json"}).second,
            "error: --intervals prints tables: give it without --json, "
            "--report, --svg, --beat, --memory and --few-shot\n");
  const TestFolder outputs;
  EXPECT_EQ(run({"--report", outputs / "page.md"}).second,
            "error: --report and --svg describe one file of runs\n");
}

} // namespace
} // namespace mtplan::tools
