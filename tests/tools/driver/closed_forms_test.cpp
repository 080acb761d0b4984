//===- closed_forms_test.cpp - Traffic and memory of whole models ---------===//
//
// The expected traffic and memory of published models are computed from their
// shapes, not by the planner. docs/closed-forms.md lists the numbered features.
//
//===----------------------------------------------------------------------===//

#include <gmock/gmock.h>

#include "planner/cost/collective_cost.h"
#include "planner/search/price/price.h"
#include "tests/tools/planning.h"
#include "tools/exchange/megatron.h"
#include "tools/text/pin_text.h"

namespace mtplan::tools {
namespace {

using planner::Bytes;
using planner::LedgerEntry;
using planner::LedgerPhase;
using planner::PlannedCandidate;
using planner::Recompute;
using planner::StepKind;

// GPT-2 1.2B has 40 layers of width 1536, 51200 tokens and 1024 positions.
constexpr double kLayers = 40, kHidden = 1536, kRows = 51200;
constexpr double kWeights = 1'213'479'936;
// A layer of width h has 12 h^2 + 13 h parameters.
constexpr double kOfLayer = 28'331'520;

PlanRequest replicated(int replicas, int zero) {
  PlanRequest request = exampleRequest("gpt2-1.2b", 1);
  request.gpus = request.dp = replicas;
  request.zeroStage = {{zero}};
  return request;
}

// Returns the bytes that collectives of `kind` over dp have in `phase`: the
// size of the unsharded tensor for each call. The loss of 8 bytes is left out.
double moved(const PlanOutcome &outcome, StepKind kind, LedgerPhase phase,
             const std::string &segment = "") {
  double bytes = 0.0;
  for (const LedgerEntry &entry : ledger(outcome))
    if (entry.kind == kind && entry.phase == phase && entry.axis == 0 &&
        entry.bytes.value > 8 && (segment.empty() || segment == entry.segment))
      bytes += entry.bytes.value *
               (kind == StepKind::allGather ? outcome.best()->config.dp : 1) *
               static_cast<double>(phase == LedgerPhase::update
                                       ? entry.perStep
                                       : entry.perMicroBatch);
  return bytes;
}

// Feature F1: each gradient is reduced once per step, not per micro-batch.
TEST(Volumes, DataParallelReducesEveryGradientOnce) {
  for (std::int64_t batch : {8, 64}) {
    PlanRequest request = replicated(8, 0);
    request.globalBatch = batch;
    PlanOutcome outcome = planned(request);
    EXPECT_EQ(moved(outcome, StepKind::allReduce, LedgerPhase::update),
              4 * kWeights);
    for (StepKind kind : {StepKind::allGather, StepKind::reduceScatter})
      for (LedgerPhase phase :
           {LedgerPhase::forward, LedgerPhase::backward, LedgerPhase::update})
        EXPECT_EQ(moved(outcome, kind, phase), 0);
  }
}

// Feature G1, and Alpa's count: a step has one reduce-scatter of all gradients,
// in fp32, and one all-gather of all parameters. If gradients had 16 bits, both
// together would be as large as one all-reduce.
TEST(Volumes, ZeroOneScattersAndGathersOnce) {
  PlanOutcome outcome = planned(replicated(8, 1));
  EXPECT_EQ(moved(outcome, StepKind::reduceScatter, LedgerPhase::update),
            4 * kWeights);
  EXPECT_EQ(moved(outcome, StepKind::allGather, LedgerPhase::update),
            2 * kWeights);
  EXPECT_EQ(moved(outcome, StepKind::allReduce, LedgerPhase::update), 0);
}

// Feature G2: gradients are reduce-scattered in each micro-batch, and
// parameters are all-gathered at the end of the step.
TEST(Volumes, ZeroTwoScattersEveryMicroBatch) {
  PlanOutcome outcome = planned(replicated(8, 2));
  EXPECT_EQ(moved(outcome, StepKind::reduceScatter, LedgerPhase::backward) +
                moved(outcome, StepKind::reduceScatter, LedgerPhase::update),
            2 * kWeights +
                // The tied table has two gradients: the embedding's and the
                // head's.
                2 * kRows * kHidden);
  EXPECT_EQ(moved(outcome, StepKind::allGather, LedgerPhase::update),
            2 * kWeights);
}

// Feature G3: a layer has three collectives per micro-batch: an all-gather in
// forward; one in backward, of the six matrices and the norms' gains, but not
// of the biases; and a reduce-scatter.
TEST(Volumes, ZeroThreeGathersTwiceAndScattersOnce) {
  PlanOutcome outcome = planned(replicated(8, 3));
  double biases =
      11 * kHidden; // fc1 has 4; q, k, v, proj, fc2 and 2 norms have 1
  EXPECT_EQ(moved(outcome, StepKind::allGather, LedgerPhase::forward, "h"),
            kLayers * 2 * kOfLayer);
  EXPECT_EQ(moved(outcome, StepKind::allGather, LedgerPhase::backward, "h"),
            kLayers * 2 * (kOfLayer - biases));
  EXPECT_EQ(moved(outcome, StepKind::reduceScatter, LedgerPhase::backward, "h"),
            kLayers * 2 * kOfLayer);
}

// Feature F6: with the same batch, each of four replicas holds a quarter of the
// activations.
TEST(Volumes, ActivationsAreDividedByReplicas) {
  PlanRequest one = replicated(1, 0), four = replicated(4, 0);
  one.microBatch = 8;
  four.microBatch = 2;
  EXPECT_EQ(planned(one).best()->memory.activations.value,
            4 * planned(four).best()->memory.activations.value);
}

// Feature G7: a recomputed layer keeps its input: s b h values of 2 bytes.
TEST(Volumes, RecomputedLayersKeepTheirInput) {
  auto kept = [](std::int64_t layers) {
    PlanRequest request = exampleRequest("gpt2-1.2b", 1);
    request.layers = layers;
    request.microBatch = 4;
    request.recompute = {{Recompute::full}};
    return planned(request).best()->memory.activations.value;
  };
  EXPECT_EQ(kept(40) - kept(10), 30 * 4 * 1024 * kHidden * 2);
}

// Counts the all-gathers and reduce-scatters of activations (feature Y).
struct Expected {
  std::int64_t gathers, scatters;
};
Expected sent(const PlanOutcome &outcome, const std::string &segment,
              LedgerPhase phase, double whole) {
  int ranks = outcome.best()->config.tp;
  Expected counted{0, 0};
  for (const LedgerEntry &entry : ledger(outcome)) {
    if (entry.segment != segment || entry.phase != phase)
      continue;
    if (entry.kind == StepKind::allGather && entry.bytes.value == whole / ranks)
      counted.gathers += entry.perMicroBatch;
    if (entry.kind == StepKind::reduceScatter && entry.bytes.value == whole)
      counted.scatters += entry.perMicroBatch;
    EXPECT_NE(entry.kind, StepKind::allToAll) << entry.cause;
    if (entry.kind == StepKind::allReduce) {
      EXPECT_LT(entry.bytes.value, whole / ranks) << entry.cause;
    }
  }
  return counted;
}

TEST(Volumes, SequenceParallelGathersSixAndScattersFourALayer) {
  for (int ranks : {2, 4, 8}) {
    PlanRequest request = exampleRequest("gpt2-1.2b", ranks);
    std::vector<std::string> errors;
    request.pins = parsePins(
        {"wte=vocab", "wpe=sequence", "embed.drop=sequence",
         "h.*.ln_1=sequence", "h.*.ln_2=sequence", "h.*.attn.q=column",
         "h.*.attn.k=column", "h.*.attn.v=column", "h.*.attn.core=head",
         "h.*.attn.proj=row", "h.*.attn.drop=sequence", "h.*.attn.add=sequence",
         "h.*.mlp.fc1=column", "h.*.mlp.fc2=row", "h.*.mlp.drop=sequence",
         "h.*.mlp.add=sequence", "ln_f=sequence", "lm_head=vocab"},
        errors);
    ASSERT_TRUE(errors.empty());
    // The plan saves the gathered input for the weight gradients if memory
    // allows; Megatron-LM saves the shards and gathers again.
    PlanOutcome outcome = planned(request);
    double whole = 1024 * kHidden * 2;
    EXPECT_EQ(sent(outcome, "h", LedgerPhase::backward, whole).gathers, 2 * 40);
    double saving = (2 * 40 + 1) * (whole - whole / ranks);
    request.memory =
        Bytes{outcome.best()->memory.total().value - 0.999 * saving};
    outcome = planned(request);
    auto expect = [&](const char *segment, LedgerPhase phase,
                      std::int64_t gathers, std::int64_t scatters) {
      Expected counted = sent(outcome, segment, phase, whole);
      EXPECT_EQ(counted.gathers, gathers) << segment << nameOf(phase);
      EXPECT_EQ(counted.scatters, scatters) << segment << nameOf(phase);
    };
    expect("embed", LedgerPhase::forward, 0, 1);
    expect("embed", LedgerPhase::backward, 1, 0);
    expect("h", LedgerPhase::forward, 2 * 40, 2 * 40);
    expect("h", LedgerPhase::backward, 4 * 40, 2 * 40);
    expect("head", LedgerPhase::forward, 1, 0);
    expect("head", LedgerPhase::backward, 1, 1);
  }
}

// Feature A7: full recomputation repeats the two all-reduces of a layer, or one
// if it stops at the last value that backward reads.
TEST(Volumes, RecomputationRepeatsAllReduces) {
  auto backward = [](bool early) {
    PlanRequest request = exampleRequest("gpt2-1.2b", 8);
    request.splits = megatronSplits();
    request.recompute = {{Recompute::full}};
    std::vector<std::string> errors;
    request.software = early ? "mtplan" : "megatron-2021";
    PlanOutcome outcome = planned(request);
    EXPECT_EQ(outcome.problem->software.stopsRecomputeEarly, early);
    Census census = censusOf(outcome, LedgerPhase::backward);
    return census[{"all_reduce", 1024 * kHidden * 2}];
  };
  EXPECT_EQ(backward(false), (2 + 2) * 40 + 1);
  EXPECT_EQ(backward(true), (2 + 1) * 40 + 1);
}

// Features H7, H8: the gradient of the tied table, V h / t values, is summed
// between the first and the last stage once per step. Stages send b s h values;
// each tensor rank receives all of them.
TEST(Volumes, StagesSendActivationsAndSumTheTiedTable) {
  for (int ranks : {1, 2, 4}) {
    PlanRequest request = exampleRequest("gpt2-1.2b", ranks);
    request.splits = megatronSplits();
    request.gpus = 2 * ranks;
    request.pp = {{2}};
    request.microBatch = 4;
    PlanOutcome outcome = planned(request);
    const PlannedCandidate &best = *outcome.best();
    const Problem &problem = *outcome.problem;
    planner::ModelGraph graph = planner::withBatch(problem.graph, 4);
    planner::Setting setting =
        planner::settingOf(problem.options, problem.machine, best.config);
    std::vector<std::vector<planner::PhaseTimes>> times;
    planner::PricedParts parts;
    for (const auto &runs : best.parts) {
      std::vector<bool> paid(graph.parameters.size(), false);
      times.emplace_back();
      for (const planner::SegmentPlan &run : runs)
        times.back().push_back(
            planner::phaseTimesOf(graph, run, setting, paid));
    }
    for (std::size_t part = 0; part < best.parts.size(); ++part) {
      parts.emplace_back();
      for (std::size_t r = 0; r < best.parts[part].size(); ++r)
        parts.back().push_back(
            {&best.parts[part][r], &times[part][r], best.parts[part][r].count});
    }
    planner::StepProblem step = planner::stepProblemOf(
        graph, parts, setting, best.config, problem.options.overlaps);
    Bytes table{4 * kRows * kHidden / ranks}; // gradient, in fp32
    EXPECT_EQ(step.tied,
              planner::collectiveTime(StepKind::allReduce, table,
                                      {2, ranks, 2 * ranks}, problem.machine));
    Bytes stream{2.0 * 4 * 1024 * kHidden};
    planner::Seconds send =
        planner::pointToPointTime(stream, ranks, problem.machine);
    EXPECT_EQ(step.stages[0].chunks[0].sendForward, send);
    EXPECT_EQ(step.stages[1].chunks[0].sendBackward, send);
    EXPECT_EQ(step.stages[1].chunks[0].sendForward, planner::Seconds{});
  }
}

PlanOutcome onOne(const char *model, double gib, int tp, Recompute recompute) {
  PlanRequest request = exampleRequest(model, tp);
  request.memory = Bytes{gib * 1024 * 1024 * 1024};
  request.recompute = {{recompute}};
  request.splits = megatronSplits();
  request.hardware = "dgx-2h";
  request.software = "megatron-2019"; // 16 bytes per weight
  return plan(request);
}

// Feature E13: a GPU of 32 GB has 31.74 GiB of usable memory. One such GPU
// holds GPT-2 1.2B, whose state has 18.08 GiB. The state of GPT-2 8.3B has 124
// GiB, which do not fit four GPUs; with recomputation, the model fits eight.
TEST(Memory, MegatronModelsFitOneAndEightV100s) {
  EXPECT_NE(onOne("gpt2-1.2b", 31.74, 1, Recompute::none).best(), nullptr);
  for (int tp : {1, 2, 4})
    for (Recompute recompute : {Recompute::none, Recompute::full})
      EXPECT_EQ(onOne("gpt2-8.3b", 31.74, tp, recompute).best(), nullptr);
  PlanOutcome eight = onOne("gpt2-8.3b", 31.74, 8, Recompute::full);
  ASSERT_NE(eight.best(), nullptr);
  const planner::MemoryUse &memory = eight.best()->memory;
  double state =
      (memory.parameters + memory.gradients + memory.optimizer).value;
  // 15.55 GiB are the state of 1,043,549,184 weights, with unsharded norms and
  // biases.
  EXPECT_NEAR(state / 1024 / 1024 / 1024, 15.55, 0.05);
}

// Feature J6: 336 M weights of 18 bytes have 5.63 GiB of state, or 1.88 GiB
// with the optimizer on the host. The tied table has a second gradient of 0.12
// GiB. On a GPU of 11 GB, 8 samples of 512 tokens fit only with recomputation,
// 12 fit with offload, and 24 fit only with both.
TEST(Memory, BertOnElevenGigabytes) {
  using planner::Offload;
  auto of = [](std::int64_t samples, Recompute recompute,
               Offload offload = Offload::none) {
    PlanRequest request = exampleRequest("bert-336m", 1);
    request.offload = {{offload}};
    request.microBatch = request.globalBatch = samples;
    request.memory = Bytes{11e9};
    request.recompute = {{recompute}};
    return plan(request);
  };
  PlanOutcome fits = of(8, Recompute::full);
  ASSERT_NE(fits.best(), nullptr);
  const planner::MemoryUse &memory = fits.best()->memory;
  double state =
      (memory.parameters + memory.gradients + memory.optimizer).value;
  EXPECT_NEAR(state / 1024 / 1024 / 1024, 5.75, 0.05);
  EXPECT_EQ(of(8, Recompute::none).best(), nullptr);
  EXPECT_EQ(of(12, Recompute::none).best(), nullptr);
  PlanOutcome offloaded = of(12, Recompute::none, Offload::optimizer);
  ASSERT_NE(offloaded.best(), nullptr);
  const planner::MemoryUse &left = offloaded.best()->memory;
  EXPECT_EQ(left.optimizer.value, 0.0);
  const double second = 4.0 * 30522 * 1024;
  EXPECT_NEAR((left.parameters + left.gradients).value, 6 * 336e6 + second,
              6e6);
  EXPECT_NEAR(left.host.value, 18 * 336e6, 18e6);
  EXPECT_EQ(of(24, Recompute::none, Offload::optimizer).best(), nullptr);
  EXPECT_EQ(of(24, Recompute::full).best(), nullptr);
  EXPECT_NE(of(24, Recompute::full, Offload::optimizer).best(), nullptr);
}

// Feature H2: the fullest of four stages needs more than a quarter of the
// memory that one large GPU needs, but less than 35 % more than that. The plan
// names the fullest stage.
TEST(Memory, OfStagesAddsUp) {
  auto need = [](int stages) {
    PlanRequest request = exampleRequest("gpt2-2.5b", 1);
    request.gpus = stages;
    request.pp = {{stages}};
    return *planned(request).best();
  };
  PlannedCandidate one = need(1), four = need(4);
  double apart = (one.memory.total() - one.memory.reserved).value;
  double together = (four.memory.total() - four.memory.reserved).value;
  // The first stage holds the embedding, and the activations of four
  // micro-batches for a quarter of the layers.
  EXPECT_EQ(four.fullestStage, 0);
  EXPECT_GT(4 * together, apart);
  EXPECT_LT(4 * together, 1.35 * apart);
  // 40 GB of state do not fit one GPU of 40 GB; four such GPUs hold them.
  auto fits = [](int stages) {
    PlanRequest request = exampleRequest("gpt2-2.5b", 1);
    request.hardware = "dgx-a100-40g";
    request.memory.reset();
    request.gpus = stages;
    request.pp = {{stages}};
    return plan(request).best() != nullptr;
  };
  EXPECT_FALSE(fits(1));
  EXPECT_TRUE(fits(4));
}

// Feature B5: Megatron-LM pads the 50,257 tokens of GPT-2 and 30,522 of BERT to
// multiples of 128 times the tensor ranks; mtplan always pads as for one rank.
TEST(Vocabulary, IsPaddedAsMegatronSaysAndHereOnce) {
  const std::pair<int, std::int64_t> kGpt2[] = {
      {1, 50304}, {2, 50432}, {4, 50688}, {8, 51200}, {16, 51200}};
  for (auto [ranks, rows] : kGpt2)
    EXPECT_EQ(megatronVocabulary(50257, 128, ranks), rows) << ranks;
  const std::pair<int, std::int64_t> kBert[] = {
      {1, 30592}, {2, 30720}, {4, 30720}, {8, 30720}};
  for (auto [ranks, rows] : kBert)
    EXPECT_EQ(megatronVocabulary(30522, 128, ranks), rows) << ranks;
  for (int ranks : {1, 2, 4})
    EXPECT_EQ(planned(exampleRequest("bert-336m", ranks))
                  .problem->model.paddedVocabulary,
              30592);
}

} // namespace
} // namespace mtplan::tools
