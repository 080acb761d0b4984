//===- ledger_test.cpp - Collectives of known partitionings ---------------===//
//
// The planner finds column, row, head and vocab splits by itself. Their traffic
// is known from Shoeybi et al. 2019 and Korthikanti et al. 2022.
//
//===----------------------------------------------------------------------===//

#include <cstdio>

#include "tests/tools/planning.h"
#include "tools/text/pin_text.h"

namespace mtplan::tools {
namespace {

using planner::LedgerPhase;

struct Gpt2 {
  const char *name;
  std::int64_t layers, hidden, heads;
};
constexpr Gpt2 kGpt2[] = {{"gpt2-1.2b", 40, 1536, 16},
                          {"gpt2-2.5b", 54, 1920, 20},
                          {"gpt2-4.2b", 64, 2304, 24},
                          {"gpt2-8.3b", 72, 3072, 32}};
constexpr double kSequence = 1024;

// Returns the split of tp for an operator in the first run that has it.
std::string wordOf(const PlanOutcome &outcome, const std::string &label) {
  const auto &graph = outcome.problem->graph;
  for (const planner::SegmentPlan &run : outcome.best()->plans()) {
    const auto &ops = graph.segments[static_cast<std::size_t>(run.segment)].ops;
    for (std::size_t o = 0; o < ops.size(); ++o)
      if (ops[o].name == label)
        return planner::wordOf(ops[o], run.strategies[o], planner::kTensorAxis);
  }
  return "no operator " + label;
}

// A sample has 4 L + 2 all-reduces of [positions][width] elements, for L
// layers, and 3 of [positions]. Half of the large ones are forward (two per
// layer and the embedding), half backward (two per layer and the logits).
TEST(Ledger, MegatronsPartitioningIsFoundForGpt2) {
  for (const Gpt2 &model : kGpt2)
    for (int tp : {2, 4, 8}) {
      if (model.heads % tp != 0)
        continue; // rejected: tp does not divide the heads
      SCOPED_TRACE(std::string(model.name) + " tp " + std::to_string(tp));
      PlanRequest request = exampleRequest(model.name, tp);
      request.splits = megatronSplits();
      PlanOutcome outcome = planned(request);
      double large = kSequence * static_cast<double>(model.hidden) * 2;
      double small = kSequence * 4;
      EXPECT_EQ(censusOf(outcome, LedgerPhase::forward),
                (Census{{{"all_reduce", large}, 2 * model.layers + 1},
                        {{"all_reduce", small}, 3}}));
      EXPECT_EQ(censusOf(outcome, LedgerPhase::backward),
                (Census{{{"all_reduce", large}, 2 * model.layers + 1}}));
      EXPECT_EQ(censusOf(outcome, LedgerPhase::update), Census{});
      EXPECT_TRUE(outcome.result.optimal);
      EXPECT_EQ(wordOf(outcome, "h.*.attn.q"), "column");
      EXPECT_EQ(wordOf(outcome, "h.*.attn.core"), "head");
      EXPECT_EQ(wordOf(outcome, "h.*.attn.proj"), "row");
      EXPECT_EQ(wordOf(outcome, "h.*.mlp.fc1"), "column");
      EXPECT_EQ(wordOf(outcome, "h.*.mlp.fc2"), "row");
      EXPECT_EQ(wordOf(outcome, "wte"), "vocab");
      EXPECT_EQ(wordOf(outcome, "lm_head"), "vocab");
    }
}

// Several samples per micro-batch, or another machine, change sizes only.
TEST(Ledger, MegatronsPartitioningDependsOnNoMachineOrMicroBatch) {
  for (const char *hardware : {"dgx-2h", "dgx-a100-80g", "dgx-h100"})
    for (int tp : {2, 4, 8})
      for (std::optional<std::int64_t> microBatch :
           {std::optional<std::int64_t>(), {1}, {8}}) {
        PlanRequest request = exampleRequest("gpt2-1.2b", tp);
        request.hardware = hardware;
        request.splits = megatronSplits();
        request.globalBatch = 512;
        request.microBatch = microBatch; // empty: searched
        PlanOutcome outcome = planned(request);
        double b = static_cast<double>(outcome.best()->config.microBatch);
        double large = b * 1024 * 1536 * 2;
        SCOPED_TRACE(std::string(hardware) + " tp " + std::to_string(tp) +
                     " micro-batch " + std::to_string(b));
        EXPECT_EQ(censusOf(outcome, LedgerPhase::forward),
                  (Census{{{"all_reduce", large}, 81},
                          {{"all_reduce", b * 1024 * 4}, 3}}));
        EXPECT_EQ(censusOf(outcome, LedgerPhase::backward),
                  (Census{{{"all_reduce", large}, 81}}));
        EXPECT_EQ(censusOf(outcome, LedgerPhase::update), Census{});
      }
}

// The branches of a parallel block are summed together: one all-reduce per
// layer and direction. The embedding is not tied, so other splits of it may be
// cheaper.
TEST(Ledger, AParallelBlockNeedsOneAllReduceEachWay) {
  PlanRequest request = exampleRequest("gpt-j-6b", 8);
  request.splits = megatronSplits();
  PlanOutcome outcome = planned(request);
  double large = 2048.0 * 4096 * 2;
  for (LedgerPhase phase : {LedgerPhase::forward, LedgerPhase::backward}) {
    std::int64_t inBlocks = 0;
    for (const planner::LedgerEntry &entry : ledger(outcome))
      if (entry.segment == "h" && entry.phase == phase) {
        EXPECT_EQ(entry.kind, planner::StepKind::allReduce);
        EXPECT_EQ(entry.bytes.value, large);
        inBlocks += entry.perMicroBatch;
      }
    EXPECT_EQ(inBlocks, 28);
  }
}

// Returns the traffic of activations in both directions, as a number of
// all-reduces; a reduce-scatter or an all-gather counts as half.
double allReducesWorth(const PlanOutcome &outcome) {
  double worth = 0.0;
  for (LedgerPhase phase : {LedgerPhase::forward, LedgerPhase::backward})
    for (const auto &[key, times] : censusOf(outcome, phase)) {
      EXPECT_NE(key.first, "all_to_all");
      worth +=
          static_cast<double>(times) * (key.first == "all_reduce" ? 1.0 : 0.5);
    }
  return worth;
}

// A row split followed by a column split reduces before the nonlinearity in
// both directions and gathers at both ends, which is three all-reduces per MLP.
// A column split followed by a row split needs two.
TEST(Ledger, RowThenColumnCostsOneAllReduceMore) {
  PlanRequest request = exampleRequest("gpt2-1.2b", 8);
  request.splits = megatronSplits();
  PlanOutcome found = planned(request);
  std::vector<std::string> errors;
  request.pins = parsePins({"h.*.mlp.fc1=row", "h.*.mlp.fc2=column"}, errors);
  ASSERT_TRUE(errors.empty());
  PlanOutcome pinned = planned(request);
  EXPECT_EQ(wordOf(pinned, "h.*.mlp.fc1"), "row");
  EXPECT_EQ(wordOf(pinned, "h.*.mlp.fc1.dx"), "row");
  EXPECT_EQ(wordOf(pinned, "h.*.mlp.fc2"), "column");
  EXPECT_EQ(allReducesWorth(pinned) - allReducesWorth(found), 40)
      << "one for each of 40 layers";
  EXPECT_GT(pinned.best()->time.step, found.best()->time.step);
}

double stepOf(const PlanRequest &request) {
  return planned(request).best()->time.step.value;
}

// The best plan is not slower than Megatron-LM's sequence parallelism, which
// pins express.
TEST(Ledger, SequenceParallelismOrSomethingCheaperIsFound) {
  for (const Gpt2 &model : kGpt2)
    for (int tp : {2, 4, 8}) {
      if (model.heads % tp != 0)
        continue;
      PlanRequest free = exampleRequest(model.name, tp);
      PlanRequest megatron = free;
      std::vector<std::string> errors;
      megatron.pins = parsePins(
          {"wte=vocab", "wpe=sequence", "embed.drop=sequence",
           "h.*.ln_1=sequence", "h.*.ln_2=sequence", "h.*.attn.q=column",
           "h.*.attn.k=column", "h.*.attn.v=column", "h.*.attn.core=head",
           "h.*.attn.proj=row", "h.*.attn.drop=sequence",
           "h.*.attn.add=sequence", "h.*.mlp.fc1=column", "h.*.mlp.fc2=row",
           "h.*.mlp.drop=sequence", "h.*.mlp.add=sequence", "ln_f=sequence",
           "lm_head=vocab"},
          errors);
      ASSERT_TRUE(errors.empty());
      PlanOutcome chosen = planned(free), pinned = planned(megatron);
      double ours = chosen.best()->time.step.value;
      double theirs = pinned.best()->time.step.value;
      EXPECT_LE(ours, theirs * (1 + 1e-9)) << model.name << " tp " << tp;
      auto count = [](const Census &census) {
        std::string text;
        for (const auto &[key, times] : census)
          text += " " + std::to_string(times) + "x" + key.first + "(" +
                  std::to_string(static_cast<std::int64_t>(key.second)) + ")";
        return text;
      };
      std::printf("%s tp %d: chosen %.3f ms:%s |%s\n    sequence parallel "
                  "%.3f ms:%s |%s\n",
                  model.name, tp, ours * 1e3,
                  count(censusOf(chosen, LedgerPhase::forward)).c_str(),
                  count(censusOf(chosen, LedgerPhase::backward)).c_str(),
                  theirs * 1e3,
                  count(censusOf(pinned, LedgerPhase::forward)).c_str(),
                  count(censusOf(pinned, LedgerPhase::backward)).c_str());
      // Every layer gathers and scatters around attention and around the MLP.
      Census forward = censusOf(pinned, LedgerPhase::forward);
      double large = kSequence * static_cast<double>(model.hidden) * 2;
      EXPECT_EQ((forward[{"reduce_scatter", large}]), 2 * model.layers + 1);
      EXPECT_EQ((forward[{"all_gather", large / tp}]), 2 * model.layers + 1);
    }
}

// The best plan over all splits is not slower than the best plan over
// Megatron-LM's splits.
TEST(Ledger, TheOptimumIsNoWorseThanMegatronsOnEveryExample) {
  for (const char *model :
       {"gpt2-1.2b", "gpt2-2.5b", "gpt2-4.2b", "gpt2-8.3b", "bert-336m",
        "bert-1.3b", "bert-3.9b", "gpt3-175b", "gpt-j-6b", "gpt-neox-20b",
        "llama-3-8b", "llama-3-70b", "llama-3-405b", "mistral-7b"})
    for (int tp : {2, 4}) {
      PlanRequest free = exampleRequest(model, tp);
      PlanRequest megatron = free;
      megatron.splits = megatronSplits();
      EXPECT_LE(stepOf(free), stepOf(megatron) * (1 + 1e-9))
          << model << " tp " << tp;
    }
}

// Each rank holds the parameters of Megatron-LM's partitioning: sharded over tp
// or replicated.
TEST(Ledger, EveryRankHoldsWhatMegatronsWould) {
  const std::pair<int, std::int64_t> kPerRank[] = {
      {0, 1213479936}, {1, 1246500480}, {2, 1052213760}, {3, 1043549184}};
  for (auto [index, parameters] : kPerRank) {
    PlanRequest request = exampleRequest(kGpt2[index].name, 1 << index);
    request.splits = megatronSplits();
    PlanOutcome outcome = planned(request);
    EXPECT_EQ(outcome.best()->memory.parameters.value,
              2.0 * static_cast<double>(parameters))
        << kGpt2[index].name;
  }
}

} // namespace
} // namespace mtplan::tools
