//===- software_fit_test.cpp - Software files fitted to runs --------------===//

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "planner/machine/software_json.h"
#include "tools/runs/layouts.h"
#include "tools/runs/software_fit.h"
#include "tools/runs/stage_layers.h"

namespace mtplan::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const char *const kBase = "pytorch-eager";

RunRow rowOf(std::int64_t gpus, std::int64_t tp, std::int64_t pp,
             std::int64_t microBatch, int zero = 0) {
  RunRow row;
  row.id = row.source = "somebody";
  row.hardware = "H100-80GB SXM";
  row.gpus = gpus;
  row.model = "Llama 1.2B";
  row.precision = "bf16";
  row.recompute = "none";
  row.layers = 16;
  row.hidden = 2048;
  row.heads = 32;
  row.inner = 8192;
  row.vocabulary = 32'000;
  row.sequence = 2048;
  row.globalBatch = 256;
  row.microBatch = microBatch;
  row.tp = tp;
  row.pp = pp;
  row.dp = gpus / tp / pp;
  row.zeroStage = zero;
  row.sequenceParallel = tp > 1;
  row.flashAttention = true;
  row.stepSeconds = 1.0;
  return row;
}

const std::vector<RunRow> kRows = {
    rowOf(8, 1, 1, 1),  rowOf(8, 2, 1, 4),      rowOf(16, 1, 1, 2, 1),
    rowOf(16, 2, 2, 1), rowOf(16, 4, 1, 1),     rowOf(16, 8, 2, 2),
    rowOf(16, 8, 1, 8), rowOf(16, 4, 4, 16, 1), rowOf(16, 2, 1, 8, 1)};

std::vector<FixedRun> runsOf(const std::vector<RunRow> &rows,
                             RowPricer &pricer) {
  std::vector<FixedRun> runs;
  for (const RunRow &row : rows) {
    PricedRow priced;
    std::optional<FixedRun> run = pricer.fix(row, priced);
    EXPECT_TRUE(run) << priced.error << priced.excluded;
    if (run)
      runs.push_back(std::move(*run));
  }
  return runs;
}

std::size_t indexOf(const std::string &name) {
  const std::vector<SoftwareFigure> &figures = softwareFigures();
  for (std::size_t f = 0; f < figures.size(); ++f)
    if (figures[f].name == name)
      return f;
  ADD_FAILURE() << name;
  return 0;
}

planner::Software trueSoftware() {
  planner::Software software = planner::loadSoftware(kBase);
  software.host.kernel = software.host.kernel * 2.0;
  software.host.perRankPipelined = software.host.perRankPipelined * 0.5;
  software.crossEntropy *= 0.7;
  return software;
}

class SoftwareFits : public testing::Test {
protected:
  SoftwareFits() : owned(runsOf(kRows, pricer)), runs(pointersTo(owned)) {
    for (const FixedRun *run : runs)
      measured.push_back(run->stepWith(actual).value);
  }

  RowPricer pricer{kBase};
  const planner::Software base = planner::loadSoftware(kBase);
  const planner::Software actual = trueSoftware();
  const std::vector<FixedRun> owned;
  const std::vector<const FixedRun *> runs;
  std::vector<double> measured;
};

// The base prices a run as the plain price does.
TEST_F(SoftwareFits, AFixedRunHasThePriceOfItsRow) {
  for (std::size_t r = 0; r < runs.size(); ++r)
    EXPECT_NEAR(runs[r]->stepWith(base).value,
                pricer.price(kRows[r]).time.step.value, 1e-9 * measured[r]);
}

// Times of known software determine the figures that matter, and predict
// layouts that the fit has not seen.
TEST_F(SoftwareFits, RecoverTheSoftwareOfTheRuns) {
  const SoftwareFit fit = fitSoftware(base, runs, measured);
  EXPECT_NEAR(fit.figures[indexOf("/host/per_rank_pipelined_us")].value, 100,
              15);
  for (std::size_t r = 0; r < runs.size(); ++r) {
    EXPECT_NEAR(fit.after[r], 0.0, 0.03) << r;
    EXPECT_NEAR(fit.before[r], runs[r]->stepWith(base).value / measured[r] - 1,
                1e-12);
  }
  std::vector<RunRow> others = {rowOf(64, 4, 2, 2, 1), rowOf(32, 2, 4, 1, 1),
                                rowOf(64, 2, 1, 2, 1)};
  for (const FixedRun &run : runsOf(others, pricer))
    EXPECT_NEAR(run.stepWith(fit.software).value / run.stepWith(actual).value,
                1.0, 0.04);
}

// One run that took three times as long hardly changes the fit.
TEST_F(SoftwareFits, IgnoreABadRun) {
  const SoftwareFit good = fitSoftware(base, runs, measured);
  measured[4] *= 3;
  const SoftwareFit fit = fitSoftware(base, runs, measured);
  for (std::size_t r = 0; r < runs.size(); ++r)
    EXPECT_NEAR(runs[r]->stepWith(fit.software).value /
                    runs[r]->stepWith(good.software).value,
                1.0, 0.06)
        << r;
}

// No run has tensor ranks on several nodes.
TEST_F(SoftwareFits, FiguresWithoutRunsKeepTheirValues) {
  const SoftwareFit fit = fitSoftware(base, runs, measured);
  for (const char *name : {"/host/per_rank_across_nodes_us",
                           "/host/per_rank_pipelined_across_nodes_us",
                           "/tensor_collectives/slowdown_across_nodes"}) {
    const std::size_t f = indexOf(name);
    EXPECT_FALSE(fit.figures[f].isDetermined) << name;
    EXPECT_EQ(fit.figures[f].value, softwareFigures()[f].get(base)) << name;
    EXPECT_NEAR(fit.figures[f].deviation, softwareFigures()[f].width, 1e-9);
  }
}

TEST_F(SoftwareFits, TheNearestPresetIsTheRuns) {
  measured.clear();
  const planner::Software neox = planner::loadSoftware("gpt-neox");
  for (const FixedRun *run : runs)
    measured.push_back(run->stepWith(neox).value);
  EXPECT_EQ(nearestSoftware(runs, measured), "gpt-neox");
}

// Every fitted value is in the file, to four digits, with its standard error;
// all other values keep their sources.
TEST_F(SoftwareFits, TheFileHasTheFittedValues) {
  const SoftwareFit fit = fitSoftware(base, runs, measured);
  const std::string text = fittedSoftwareText(planner::softwareText(kBase), fit,
                                              "ours", "fit to 9 runs of a.csv");
  const planner::Software read = planner::parseSoftware(text);
  EXPECT_EQ(read.name, "ours");
  for (const SoftwareFigure &figure : softwareFigures()) {
    const double value = figure.get(fit.software);
    EXPECT_NEAR(figure.get(read), value, 6e-4 * value) << figure.name;
  }
  for (std::size_t i = 0; i < read.attention.rates.size(); ++i)
    EXPECT_NEAR(read.attention.rates[i].backward /
                    fit.software.attention.rates[i].backward,
                1.0, 6e-4);
  const nlohmann::json file = nlohmann::json::parse(text);
  EXPECT_THAT(file["host"]["kernel_us"]["source"].get<std::string>(),
              HasSubstr("fit to 9 runs of a.csv, standard error "));
  const nlohmann::json before =
      nlohmann::json::parse(planner::softwareText(kBase));
  EXPECT_EQ(file["overlap"], before["overlap"]);
}

// Each suggestion is an offered run, and none comes twice.
TEST_F(SoftwareFits, SuggestionsAreOfferedRuns) {
  const std::vector<std::size_t> offered = {1, 3, 5, 7};
  std::vector<std::size_t> chosen = suggestRuns(base, runs, {0}, offered, 3);
  ASSERT_EQ(chosen.size(), 3U);
  std::ranges::sort(chosen);
  EXPECT_EQ(std::ranges::adjacent_find(chosen), chosen.end());
  for (std::size_t run : chosen)
    EXPECT_THAT(offered, testing::Contains(run));
  EXPECT_TRUE(suggestRuns(base, runs, {0}, offered, 0).empty());
}

// A base without a host needs none if it predicts the runs exactly.
TEST_F(SoftwareFits, AHostIsNotInvented) {
  const planner::Software plain = planner::loadSoftware("torchtitan-eager");
  measured.clear();
  for (const FixedRun *run : runs)
    measured.push_back(run->stepWith(plain).value);
  const SoftwareFit fit = fitSoftware(plain, runs, measured);
  EXPECT_LT(fit.software.host.step.value, 1e-4);
  for (double error : fit.after)
    EXPECT_NEAR(error, 0.0, 1e-3);
}

TEST_F(SoftwareFits, OneRunIsEnough) {
  const double seconds = 1.1 * runs[3]->stepWith(base).value;
  const SoftwareFit fit = fitSoftware(base, {runs[3]}, {seconds});
  EXPECT_NEAR(fit.before[0], 1 / 1.1 - 1, 1e-12);
  EXPECT_LT(std::fabs(fit.after[0]), 0.5 * std::fabs(fit.before[0]));
}

// Peaks of known software determine what the framework keeps.
TEST_F(SoftwareFits, RecoverTheMemoryOfTheRuns) {
  planner::Software keeping = base;
  keeping.attention.copyKept = 12.0;
  keeping.memory.crossEntropy = 6.0;
  std::vector<double> peaks;
  for (const FixedRun *run : runs)
    peaks.push_back(run->peakGiBWith(keeping));
  const SoftwareFit fit = fitSoftware(base, runs, peaks, Quantity::peakMemory);
  // The logits of one sample are small, so these runs tell less about them.
  EXPECT_NEAR(fit.software.attention.copyKept, 12.0, 2.0);
  EXPECT_NEAR(fit.software.memory.crossEntropy, 6.0, 3.0);
  for (std::size_t r = 0; r < runs.size(); ++r) {
    EXPECT_NEAR(fit.before[r], runs[r]->peakGiBWith(base) / peaks[r] - 1, 1e-9);
    EXPECT_LT(std::fabs(fit.after[r]), 0.3 * std::fabs(fit.before[r]));
  }
  // Memory says nothing about times.
  EXPECT_EQ(fit.software.host, base.host);
  EXPECT_THAT(figuresText(fit), HasSubstr("/memory/cross_entropy_bytes"));
  EXPECT_THAT(fittedSoftwareText(planner::softwareText(kBase), fit, "ours",
                                 "fit to 9 runs"),
              HasSubstr("\"copy_kept_bytes\""));
}

// The stage and the bytes that a row states: nanotron's peak is that of the
// first stage; reserved bytes include the allocator's cache, and those of
// nvidia-smi the context too.
TEST(FixedRun, PredictsTheMemoryThatTheRowStates) {
  RunRow row = rowOf(16, 2, 2, 1);
  row.source = "a stack";
  planner::Software software = planner::loadSoftware(kBase);
  software.memory.cached = 0.1;
  RowPricer pricer(kBase);
  const auto peakOf = [&](const char *source, const char *kind) {
    row.source = source;
    row.memoryKind = kind;
    PricedRow priced;
    const std::optional<FixedRun> run = pricer.fix(row, priced);
    EXPECT_TRUE(run);
    return run ? run->peakGiBWith(software) : 0.0;
  };
  const double allocated = peakOf("a stack", "allocated");
  EXPECT_NEAR(peakOf("a stack", "reserved"), 1.1 * allocated, 1e-9);
  EXPECT_NEAR(peakOf("a stack", "nvidia-smi"), 1.1 * allocated + 2.5, 1e-9);
  EXPECT_EQ(peakOf("a stack", ""), allocated);
  // With the logits, the last stage is the fullest.
  row.recompute = "full";
  row.microBatch = 8;
  row.vocabulary = 524'288;
  const double first = peakOf("nanotron", "allocated");
  constexpr double kGiB = 1 << 30;
  const double fullest = pricer.price(row).memory.value / kGiB - 2.5;
  EXPECT_LT(first, 0.9 * fullest);
}

// Software whose passes move nothing, and whose attention has no rates, keeps
// both.
TEST_F(SoftwareFits, FiguresOfNothingStay) {
  planner::Software empty = base;
  empty.passes = {};
  empty.attention.rates.clear();
  const SoftwareFit fit = fitSoftware(empty, runs, measured);
  EXPECT_TRUE(fit.software.attention.rates.empty());
  EXPECT_EQ(fit.software.passes.residual.forwardBytes, 0.0);
  for (double error : fit.after)
    EXPECT_TRUE(std::isfinite(error));
}

// The reductions of this row follow backward, whatever its software does.
TEST(FixedRun, KeepsWhatTheRowStates) {
  RunRow row = rowOf(16, 1, 1, 2);
  row.notes = "DDP=local";
  RowPricer pricer(kBase);
  PricedRow priced;
  const std::optional<FixedRun> run = pricer.fix(row, priced);
  ASSERT_TRUE(run);
  EXPECT_NEAR(run->stepWith(planner::loadSoftware(kBase)).value,
              pricer.price(row).time.step.value, 1e-9);
  row.notes.clear();
  EXPECT_LT(pricer.price(row).time.step, priced.time.step);
}

TEST(Layouts, OtherLayoutsOfTheModelAndBatch) {
  RunRow row = rowOf(2, 1, 1, 128);
  RunRow sharded = rowOf(4, 2, 1, 64, 1);
  std::vector<std::string> texts;
  for (const RunRow &other : otherLayouts({row, sharded}, 2)) {
    if (microBatchOf(other) == 128)
      texts.push_back(layoutText(other));
    EXPECT_EQ(other.sequenceParallel, other.tp > 1);
  }
  EXPECT_THAT(
      texts,
      ElementsAre("tp 1, pp 1, dp 2, micro-batch 128, ZeRO 1 on 2 GPUs",
                  "tp 1, pp 2, dp 1, micro-batch 128, ZeRO 0 on 2 GPUs",
                  "tp 2, pp 1, dp 1, micro-batch 128, ZeRO 0 on 2 GPUs"));
  EXPECT_TRUE(otherLayouts({row}, 1).empty());
  row.cp = 2;
  row.dp = 1;
  for (const RunRow &other : otherLayouts({row}, 2))
    EXPECT_EQ(other.tp * other.pp * *other.dp, 1);
}

// The cuts follow from the rule in nanotron's source. With 16 layers of 67
// million weights and a head of 268 million, each of 4 stages should take 5
// layers' weights.
TEST(StageLayers, NanotronCutsByWeights) {
  RunRow row = rowOf(8, 1, 4, 1);
  row.vocabulary = 131'072;
  EXPECT_THAT(stageLayersOf(row, 16), ElementsAre(4, 4, 4, 4));
  row.source = "nanotron";
  EXPECT_THAT(stageLayersOf(row, 16), ElementsAre(6, 5, 5, 0));
  row.pp = 2;
  EXPECT_THAT(stageLayersOf(row, 16), ElementsAre(11, 5));
  row.pp = 8;
  EXPECT_THAT(stageLayersOf(row, 16), ElementsAre(3, 3, 2, 3, 2, 3, 0));
  row.hidden = 4096;
  row.inner = 14'336;
  row.pp = 16;
  EXPECT_THAT(stageLayersOf(row, 32),
              ElementsAre(3, 2, 2, 2, 2, 2, 2, 3, 2, 2, 2, 2, 2, 2, 2, 0));
  row.pp = 1;
  EXPECT_THAT(stageLayersOf(row, 32), ElementsAre(32));
  row.pp = 2;
  row.chunks = 2;
  EXPECT_THAT(stageLayersOf(row, 32), ElementsAre(8, 8, 8, 8));
}

} // namespace
} // namespace mtplan::tools
