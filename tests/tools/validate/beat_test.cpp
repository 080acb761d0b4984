//===- beat_test.cpp - Plans against published configurations -------------===//
//
// These tests plan a sample of the published models and clusters; the heavy
// ctest entries `beat.*` plan all.
//
//===----------------------------------------------------------------------===//

#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/command/command.h"
#include "tools/validate/beat.h"
#include "tools/validate/validate_command.h"

namespace mtplan::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Verdict = PlanComparison::Verdict;

const std::string kPublished =
    MTPLAN_SOURCE_DIR "/docs/accuracy/throughput.csv";

void tellNobody(const PlanComparison &, std::size_t, std::size_t) {}

struct Ran {
  int code = 0;
  std::string out, err;
};
Ran run(const std::vector<std::string> &arguments) {
  std::ostringstream out, err;
  int code = runValidate(arguments, out, err);
  return {code, out.str(), err.str()};
}

// The searches here are short. They cover 2 to 576 GPUs, fp16, bf16 and fp8,
// and tensor, pipeline and context ranks.
TEST(Beat, PlansAreAtLeastAsFastAsPublishedRuns) {
  std::ifstream file(kPublished);
  std::ostringstream text;
  text << file.rdbuf();
  std::vector<std::string> errors;
  std::vector<RunRow> rows;
  for (const RunRow &row : readRows(text.str(), errors))
    for (const char *id :
         {"llm_c-1", "megatron_readme_2020-3", "korthikanti_2022-2",
          "nvidia_dgxc-76", "nvidia_dgxc-88", "vtrain_multi-16"})
      if (row.id == id)
        rows.push_back(row);
  ASSERT_EQ(rows.size(), 6U);
  std::vector<PlanComparison> all = beat(rows, {}, tellNobody);
  ASSERT_EQ(all.size(), 5U); // 76 and 88 differ only in their container
  for (const PlanComparison &one : all) {
    EXPECT_EQ(one.verdict(), Verdict::beaten) << beatLine(one);
    // Each row fits on its own machine.
    EXPECT_TRUE(one.fitting && !one.tooLarge) << beatLine(one);
  }
}

RunRow rowOf(const std::string &id, std::int64_t microBatch) {
  RunRow row;
  row.id = id;
  row.source = "somebody";
  row.hardware = "H100-80GB SXM";
  row.gpus = 8;
  row.model = "GPT 1.2B";
  row.precision = "bf16";
  row.recompute = "none";
  row.layers = 24;
  row.hidden = 2048;
  row.heads = 16;
  row.vocabulary = 50257;
  row.sequence = 2048;
  row.globalBatch = 2048;
  row.microBatch = microBatch;
  row.flashAttention = true;
  row.stepSeconds = 1.0;
  return row;
}

// 256 samples of 2,048 tokens keep about 16 x 2,048 values per token and layer,
// 800 GB for 24 layers. The run is impossible, so a plan need not be faster
// than it.
TEST(Beat, SeparatesConfigurationsThatDoNotFit) {
  std::vector<PlanComparison> all =
      beat({rowOf("fits", 4), rowOf("large", 256)}, {}, tellNobody);
  ASSERT_EQ(all.size(), 1U);
  const PlanComparison &one = all.front();
  EXPECT_EQ(one.runs, 2U);
  ASSERT_TRUE(one.fitting && one.tooLarge && one.found);
  EXPECT_EQ(one.fitting->id, "fits");
  EXPECT_LE(one.fitting->memory, one.fitting->limit);
  EXPECT_EQ(one.tooLarge->id, "large");
  EXPECT_GT(one.tooLarge->memory, 5.0 * one.tooLarge->limit);
  EXPECT_THAT(beatLine(one), HasSubstr("large (by our estimate it needs "));
  EXPECT_THAT(beatTotals(all),
              HasSubstr("with a run that does not fit by our estimate: 1\n"));
}

TEST(Beat, Verdicts) {
  PlanComparison one;
  EXPECT_EQ(one.verdict(), Verdict::nothingFits);
  one.found = true;
  one.planned = 2.0;
  one.fitting = PublishedPrice{"a", 2.0, {}, {}};
  EXPECT_EQ(one.verdict(), Verdict::beaten);
  one.tooLarge = PublishedPrice{"b", 1.9, {}, {}};
  EXPECT_EQ(one.verdict(), Verdict::beatsFitting);
  EXPECT_THAT(beatMarkdown({one}, "x.csv"),
              HasSubstr("slower only than what does not fit"));
  one.fitting->seconds = 1.99;
  EXPECT_EQ(one.verdict(), Verdict::slower);
  EXPECT_THAT(beatLine(one), HasSubstr("SLOWER"));
}

TEST(Beat, GroupsTogetherCoverAllRows) {
  std::vector<RunRow> rows;
  for (int i = 0; i < 5; ++i) {
    rows.push_back(rowOf("x", 4));
    rows.back().gpus = 1;
    rows.back().globalBatch = 8 << i;
  }
  std::vector<std::size_t> planned;
  for (std::size_t part : {1, 2, 3})
    beat(rows, {part, 3},
         [&](const PlanComparison &one, std::size_t i, std::size_t n) {
           EXPECT_EQ(n, 5U);
           EXPECT_THAT(one.name, HasSubstr("batch " + std::to_string(8 << i)));
           planned.push_back(i);
         });
  EXPECT_THAT(planned, ElementsAre(0, 3, 1, 4, 2));
}

TEST(Beat, TheCommandPrintsEachAndTheirSum) {
  Ran ran = run({kPublished, "--beat", "--only", "llm_c-", "--group", "2/4"});
  EXPECT_EQ(ran.code, kDone);
  EXPECT_THAT(ran.out, testing::StartsWith("[2/4] GPT-2 350M bf16 on 8 x "));
  EXPECT_THAT(ran.out, HasSubstr("\ngroups, published runs in them: 1, 1\n"));
  for (const char *group : {"0/4", "5/4", "4", "1/", "/1", "1/2/3", "-1/2"}) {
    ran = run({kPublished, "--beat", "--group", group});
    EXPECT_EQ(ran.code, kBadInput);
    EXPECT_EQ(ran.err, std::string("error: --group: must be N/M with N from 1 "
                                   "to M, but is \"") +
                           group + "\"\n");
  }
  ran = run({kPublished, "--group", "1/2"});
  EXPECT_EQ(ran.err, "error: --group goes with --beat\n");
}

} // namespace
} // namespace mtplan::tools
