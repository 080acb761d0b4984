//===- partial_fc_test.cpp - A trunk split by samples, a head by classes --===//
//
// InsightFace's partial FC has ten layers that every rank runs on its own
// samples, and a classifier over a million classes, of which every rank holds
// an eighth. The planner has one axis of eight ranks, on which every operator
// chooses its split. The boundary between the two parts is one all-gather
// forward and one reduce-scatter backward.
//
//===----------------------------------------------------------------------===//

#include <gtest/gtest.h>

#include "planner/graph/op_graph.h"
#include "planner/search/search.h"
#include "tests/planner/graph_check.h"
#include "tests/planner/random_model.h"

namespace mtplan::planner {
namespace {

constexpr int kRanks = 8, kLayers = 10;
constexpr std::int64_t kSamples = 16384, kWidth = 512, kClasses = 1'000'000;

class SegmentBuilder {
public:
  SegmentBuilder(ModelGraph &model, const char *name, int repeat)
      : graph(model) {
    segment.name = name;
    segment.repeat = repeat;
  }

  int tensor(const char *name, std::vector<std::int64_t> shape, Phase phase,
             TensorKind kind = TensorKind::activation, int bytes = 2) {
    Tensor made;
    made.name = segment.name + "." + name;
    made.batchDim = !shape.empty() && shape[0] == kSamples &&
                            kind != TensorKind::parameter &&
                            made.name.find(".dw") == std::string::npos
                        ? 0
                        : -1;
    made.shape = std::move(shape);
    made.kind = kind;
    made.phase = phase;
    made.elementBytes = bytes;
    segment.tensors.push_back(made);
    return static_cast<int>(segment.tensors.size()) - 1;
  }

  // Adds a weight [kWidth][columns]. Splits of the columns are of kind `split`.
  int weight(std::int64_t columns, Split split) {
    Parameter parameter;
    parameter.name = segment.name + ".weight";
    parameter.shape = {kWidth, columns};
    parameter.splits = {Split::row, split};
    parameter.copies = segment.repeat;
    graph.parameters.push_back(parameter);
    int made = tensor("weight", parameter.shape, Phase::forward,
                      TensorKind::parameter);
    segment.tensors.back().parameter =
        static_cast<int>(graph.parameters.size()) - 1;
    return made;
  }

  // Adds an operator with the factors 0 (samples), 1 (width), 2 (columns).
  Op &op(const char *kind, Phase phase, std::int64_t columns, Split split,
         std::vector<Use> operands, Use result) {
    Op made;
    made.name = segment.name + "." + kind;
    made.kind = kind;
    made.phase = phase;
    made.factors = {{"b", kSamples, Split::batch, true, Reduction::sum, 0.0},
                    {"i", kWidth, Split::row, true, Reduction::sum, 0.0},
                    {"o", columns, split, true, Reduction::sum, 0.0}};
    made.operands = std::move(operands);
    made.results = {std::move(result)};
    segment.ops.push_back(made);
    return segment.ops.back();
  }

  void product(const char *kind, Phase phase, std::int64_t columns, Split split,
               std::vector<Use> operands, Use result, std::vector<int> mnk) {
    Op &made =
        op(kind, phase, columns, split, std::move(operands), std::move(result));
    made.opClass = OpClass::gemm;
    made.m = {mnk[0]}, made.n = {mnk[1]}, made.k = {mnk[2]};
    made.flops = Flops{2.0 * kSamples * kWidth * double(columns)};
  }

  // Adds the product y = x W. backward() adds the gradients of x and W, which
  // are products of dy.
  int forward(int x, int w, std::int64_t columns, Split split) {
    int y = tensor("y", {kSamples, columns}, Phase::forward);
    product("product", Phase::forward, columns, split,
            {{x, {0, 1}}, {w, {1, 2}}}, {y, {0, 2}}, {0, 2, 1});
    return y;
  }
  int backward(int x, int w, int dy, std::int64_t columns, Split split) {
    int dx = tensor("dx", {kSamples, kWidth}, Phase::backward);
    product("dx", Phase::backward, columns, split, {{dy, {0, 2}}, {w, {1, 2}}},
            {dx, {0, 1}}, {0, 1, 2});
    int dw = tensor("dw", {kWidth, columns}, Phase::backward);
    product("dw", Phase::backward, columns, split, {{x, {0, 1}}, {dy, {0, 2}}},
            {dw, {1, 2}}, {1, 2, 0});
    segment.accumulations = {
        {dw, segment.tensors[static_cast<std::size_t>(w)].parameter}};
    return dx;
  }

  ModelGraph &graph;
  SegmentGraph segment;
};

void addTrunk(ModelGraph &graph, const char *name, int repeat, bool first) {
  SegmentBuilder build(graph, name, repeat);
  int w = build.weight(kWidth, Split::column);
  int x = build.tensor("x", {kSamples, kWidth}, Phase::forward,
                       first ? TensorKind::input : TensorKind::activation);
  int y = build.forward(x, w, kWidth, Split::column);
  int dy = build.tensor("dy", {kSamples, kWidth}, Phase::backward);
  int dx = build.backward(x, w, dy, kWidth, Split::column);
  build.segment.carriedOut = {y};
  build.segment.gradientIn = {dy};
  if (!first) {
    build.segment.carriedIn = {x};
    build.segment.gradientOut = {dx};
  }
  graph.segments.push_back(build.segment);
}

// Adds the classifier and its loss as Megatron splits it: the maximum, the sum
// of exponentials and the target's logit of a sample are one number each.
void addHead(ModelGraph &graph) {
  SegmentBuilder build(graph, "head", 1);
  int w = build.weight(kClasses, Split::vocab);
  int x = build.tensor("x", {kSamples, kWidth}, Phase::forward);
  int targets =
      build.tensor("targets", {kSamples}, Phase::forward, TensorKind::input, 4);
  int logits = build.forward(x, w, kClasses, Split::vocab);
  auto perSample = [&](const char *name) {
    return build.tensor(name, {kSamples}, Phase::forward,
                        TensorKind::activation, 4);
  };
  int largest = perSample("max"), sum = perSample("sum"),
      hit = perSample("hit");
  auto reduce = [&](const char *kind, std::vector<Use> operands, int result) {
    return &build.op(kind, Phase::forward, kClasses, Split::vocab,
                     std::move(operands), {result, {0}});
  };
  reduce("vocab_max", {{logits, {0, 2}}}, largest)->factors[2].reduction =
      Reduction::max;
  reduce("vocab_sum_exp", {{logits, {0, 2}}, {largest, {0}}}, sum);
  reduce("vocab_pick", {{logits, {0, 2}}, {targets, {0}}}, hit);
  int loss =
      build.tensor("loss", {}, Phase::forward, TensorKind::activation, 4);
  Op &total = build.op("token_loss", Phase::forward, kClasses, Split::vocab,
                       {{largest, {0}}, {sum, {0}}, {hit, {0}}}, {loss, {}});
  total.factors.resize(1);
  int dlogits = build.tensor("dlogits", {kSamples, kClasses}, Phase::backward);
  build.op("cross_entropy_grad", Phase::backward, kClasses, Split::vocab,
           {{logits, {0, 2}}, {largest, {0}}, {sum, {0}}, {targets, {0}}},
           {dlogits, {0, 2}});
  int dx = build.backward(x, w, dlogits, kClasses, Split::vocab);
  // Operators that do not read the input cannot be split along its width.
  for (Op &op : build.segment.ops)
    if (op.opClass != OpClass::gemm && op.factors.size() == 3)
      op.factors[1].divisible = false;
  build.segment.carriedIn = {x};
  build.segment.gradientOut = {dx};
  build.segment.reported = {loss};
  graph.segments.push_back(build.segment);
}

TEST(PartialFc, TrunkBySamplesHeadByClasses) {
  ModelGraph graph;
  graph.name = "partial fc";
  graph.sequence = 1;
  addTrunk(graph, "stem", 1, true);
  addTrunk(graph, "trunk", kLayers - 1, false);
  addHead(graph);
  ASSERT_EQ(check(graph), std::vector<std::string>{});
  // The machine has 10 GB/s between ranks, 100 Tflop/s, and 64 GB of memory
  // with 1 TB/s.
  Machine machine = roundMachine();
  machine.device.memory = Bytes{64e9};
  machine.device.bandwidth = BytesPerSec{1e12};
  machine.device.bf16 = FlopsPerSec{1e14};
  machine.levels[0].bandwidth = BytesPerSec{10e9};
  SearchOptions options;
  options.devices = kRanks;
  options.tp = kRanks;
  options.microBatch = options.globalBatch = kSamples;
  options.tensorSplits = {Split::batch, Split::row, Split::column,
                          Split::vocab};
  SearchResult result = search(graph, machine, options);
  ASSERT_EQ(result.plans.size(), 1U);
  EXPECT_TRUE(result.optimal);
  const PlannedCandidate &best = result.plans[0];
  int axis = tensorAxisOf(meshOf(best.config));
  for (const SegmentPlan &run : best.plans()) {
    const SegmentGraph &segment =
        graph.segments[static_cast<std::size_t>(run.segment)];
    for (std::size_t o = 0; o < segment.ops.size(); ++o) {
      const Op &op = segment.ops[o];
      std::string expected = segment.name == "head" ? "vocab" : "batch";
      if (op.kind == "token_loss")
        continue; // one number per sample; may have any split
      EXPECT_EQ(wordOf(op, run.strategies[o], axis), expected) << op.name;
    }
  }

  Setting setting = settingOf(options, machine, best.config);
  const double kEmbeddings = 2.0 * kSamples * kWidth;
  int gathers = 0, scatters = 0;
  // Counts all-reduces of one number per sample; a reduce-scatter counts half.
  double ofSamples = 0.0;
  for (const LedgerEntry &entry : ledgerOf(graph, best.plans(), setting)) {
    // Skips the all-reduces of the trunk's gradients, which data parallelism
    // has, too.
    if (entry.phase == LedgerPhase::update ||
        (entry.cause.ends_with(".dw") && entry.segment != "head"))
      continue;
    auto times = static_cast<int>(entry.perMicroBatch);
    bool small = entry.bytes.value <= 4 * kSamples;
    if (small) {
      EXPECT_EQ(entry.phase, LedgerPhase::forward) << entry.cause;
      ofSamples += times * (entry.kind == StepKind::allReduce ? 1.0 : 0.5);
    } else if (entry.kind == StepKind::allGather) {
      EXPECT_EQ(entry.phase, LedgerPhase::forward) << entry.cause;
      EXPECT_EQ(entry.bytes.value, kEmbeddings / kRanks);
      gathers += times;
    } else {
      EXPECT_EQ(entry.kind, StepKind::reduceScatter) << entry.cause;
      EXPECT_EQ(entry.phase, LedgerPhase::backward) << entry.cause;
      EXPECT_EQ(entry.bytes.value, kEmbeddings);
      scatters += times;
    }
  }
  EXPECT_EQ(gathers, 1);
  EXPECT_EQ(scatters, 1);
  // The loss needs up to three all-reduces of one number per sample. A
  // reduction that only the rank with the sample needs is a reduce-scatter,
  // which counts as half of an all-reduce.
  EXPECT_GT(ofSamples, 0.0);
  EXPECT_LE(ofSamples, 3.0);

  // If every rank holds all million classes, the gradients of 1 GB are
  // all-reduced.
  options.tensorSplits = {Split::batch};
  SearchResult replicated = search(graph, machine, options);
  ASSERT_EQ(replicated.plans.size(), 1U);
  EXPECT_GT(replicated.plans[0].time.step, 1.5 * best.time.step);
}

} // namespace
} // namespace mtplan::planner
