//===- fit_software_test.cpp - mtplan fit-software ------------------------===//

#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/machine/software_json.h"
#include "tests/base/test_helpers.h"
#include "tests/tools/command_testing.h"
#include "tools/text/text_file.h"

namespace mtplan::tools {
namespace {

using testing::HasSubstr;

// Returns the header of the published runs and those with the given ids.
std::string runsOf(const std::vector<std::string> &ids) {
  std::ifstream file(MTPLAN_SOURCE_DIR "/docs/accuracy/throughput-2.csv");
  std::string text, line;
  std::getline(file, text);
  text += '\n';
  while (std::getline(file, line))
    for (const std::string &id : ids)
      if (line.starts_with("nanotron_sweep-" + id + ','))
        text += line + '\n';
  return text;
}

class FitSoftware : public testing::Test {
protected:
  FitSoftware() {
    std::ofstream(runs) << runsOf({"35", "59", "62", "68", "86", "88"});
  }
  const TestFolder folder;
  const std::string runs = folder / "runs.csv", output = folder / "ours.json";
};

TEST_F(FitSoftware, WritesAFileThatThePlannerReads) {
  Ran ran({"fit-software", runs, "--base", "pytorch-eager", "-o", output,
           "--suggest", "2"});
  EXPECT_EQ(ran.code, kDone) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("6 runs, starting from pytorch-eager\n"));
  EXPECT_THAT(ran.out, HasSubstr("/host/collective_us"));
  EXPECT_THAT(ran.out,
              HasSubstr("No run depends on "
                        "/tensor_collectives/slowdown_across_nodes, "));
  EXPECT_THAT(ran.out, HasSubstr("Measure next, the most useful first\n  "
                                 "Llama-style 1.34B, batch 256 of 4096: tp "));
  EXPECT_EQ(planner::loadSoftware(output).name, "ours");
  Ran planned = runExample("gpt2-1.2b", {"--software", output});
  EXPECT_EQ(planned.code, kDone) << planned.err;
}

TEST_F(FitSoftware, WithoutAFileTheSoftwareIsTheOutput) {
  Ran ran({"fit-software", runs, "--hardware", "dgx-h100"});
  EXPECT_EQ(ran.code, kDone) << ran.err;
  EXPECT_NO_THROW(planner::parseSoftware(ran.out));
  EXPECT_THAT(ran.err, HasSubstr("6 runs, starting from "));
}

TEST_F(FitSoftware, RefusesBadInput) {
  Ran ran({"fit-software", folder / "no.csv"});
  EXPECT_EQ(ran.code, kBadInput);
  EXPECT_THAT(ran.err, HasSubstr("no.csv"));
  ran = Ran({"fit-software", runs, "--base", "nobody"});
  EXPECT_EQ(ran.code, kBadInput);
  EXPECT_THAT(ran.err, HasSubstr("no software file \"nobody\""));
  ran = Ran({"fit-software", runs, "--hardware", "nowhere"});
  EXPECT_EQ(ran.code, kBadInput);
  EXPECT_THAT(ran.err, HasSubstr("no machine file \"nowhere\""));
  ran = Ran({"fit-software", runs, "-o", runs});
  EXPECT_EQ(ran.code, kBadInput);
  std::ofstream(output) << planner::softwareText("pytorch-eager");
  ran = Ran({"fit-software", runs, "--base", output, "-o", output});
  EXPECT_EQ(ran.code, kBadInput);
  EXPECT_THAT(ran.err, HasSubstr("is what --base names"));
  std::ofstream(runs) << runsOf({});
  ran = Ran({"fit-software", runs});
  EXPECT_EQ(ran.code, kBadInput);
  EXPECT_EQ(ran.err, "error: " + runs + ": has no runs\n");
}

} // namespace
} // namespace mtplan::tools
