//===- op_graph_test.cpp - Errors and batch sizes of op graphs ------------===//

#include <algorithm>
#include <functional>

#include <gtest/gtest.h>

#include "planner/graph/op_graph.h"
#include "tests/planner/graph_check.h"

using namespace mtplan::planner;

namespace {

// The toy model repeats one linear layer, y = x w. Its forward and backward
// have six tensors:
//   0 x[b,i]  1 w[i,o]  2 y[b,o]  3 dy[b,o]  4 dx[b,i]  5 dw[i,o]
Op gemm(const std::string &name, Phase phase, Use a, Use b, Use result,
        std::vector<int> m, std::vector<int> n, std::vector<int> k) {
  Op op;
  op.name = name;
  op.kind = "einsum";
  op.phase = phase;
  op.opClass = OpClass::gemm;
  op.factors = {{"b", 6, Split::batch, true, Reduction::sum, 0.0},
                {"i", 4, Split::row, true, Reduction::sum, 0.0},
                {"o", 4, Split::column, true, Reduction::sum, 0.0}};
  op.operands = {std::move(a), std::move(b)};
  op.results = {std::move(result)};
  op.linearGroups = {{0}, {1}};
  op.flops = Flops{2.0 * 6 * 4 * 4};
  op.m = std::move(m);
  op.n = std::move(n);
  op.k = std::move(k);
  return op;
}

ModelGraph toy() {
  ModelGraph graph;
  graph.name = "toy";
  graph.sequence = 1;
  graph.parameters = {{"w", {4, 4}, {Split::row, Split::column}, 2, 3}};
  auto activation = [](const std::string &name, Phase phase) {
    return Tensor{name, {6, 4}, 2, TensorKind::activation, phase, -1, 0};
  };
  SegmentGraph segment;
  segment.name = "h";
  segment.repeat = 3;
  segment.tensors = {
      activation("x", Phase::forward),
      {"w", {4, 4}, 2, TensorKind::parameter, Phase::forward, 0, -1},
      activation("y", Phase::forward),
      activation("dy", Phase::backward),
      activation("dx", Phase::backward),
      {"dw", {4, 4}, 4, TensorKind::activation, Phase::backward, -1, -1}};
  segment.ops = {gemm("y", Phase::forward, {0, {0, 1}}, {1, {1, 2}},
                      {2, {0, 2}}, {0}, {2}, {1}),
                 gemm("dx", Phase::backward, {3, {0, 2}}, {1, {1, 2}},
                      {4, {0, 1}}, {0}, {1}, {2}),
                 gemm("dw", Phase::backward, {0, {0, 1}}, {3, {0, 2}},
                      {5, {1, 2}}, {1}, {2}, {0})};
  segment.carriedIn = {0};
  segment.carriedOut = {2};
  segment.gradientIn = {3};
  segment.gradientOut = {4};
  segment.accumulations = {{5, 0}};
  graph.segments = {segment};
  return graph;
}

using Lines = std::vector<std::string>;

TEST(Check, ASoundGraphHasNoErrors) { EXPECT_EQ(check(toy()), Lines{}); }

// Holds a change that breaks one invariant of the toy graph, and an error that
// check() must then return.
struct Broken {
  const char *name;
  std::function<void(ModelGraph &)> breakIt;
  const char *line;
};

void PrintTo(const Broken &broken, std::ostream *out) { *out << broken.name; }

class CheckBroken : public testing::TestWithParam<Broken> {};

TEST_P(CheckBroken, IsReportedWithItsPlace) {
  ModelGraph graph = toy();
  GetParam().breakIt(graph);
  Lines lines = check(graph);
  EXPECT_NE(std::ranges::find(lines, GetParam().line), lines.end())
      << testing::PrintToString(lines);
}

const Broken kBroken[] = {
    {"no_segments", [](ModelGraph &g) { g.segments.clear(); },
     "/segments: is empty; a model needs at least one"},
    {"shape", [](ModelGraph &g) { g.segments[0].tensors[2].shape[1] = 0; },
     "/segments/0/tensors/2/shape/1: is 0, must be at least 1"},
    {"factor_size",
     [](ModelGraph &g) { g.segments[0].ops[0].factors[1].size = 5; },
     "/segments/0/ops/0/operands/0/factors/1: factor \"i\" has size 5, but "
     "dimension 1 of \"x\" has size 4"},
    {"factor_index",
     [](ModelGraph &g) { g.segments[0].ops[0].operands[0].factors[0] = 3; },
     "/segments/0/ops/0/operands/0/factors/0: is 3, but there are 3 factors"},
    {"factor_count",
     [](ModelGraph &g) { g.segments[0].ops[0].operands[0].factors = {0}; },
     "/segments/0/ops/0/operands/0/factors: lists 1 factors, but \"x\" has 2 "
     "dimensions"},
    {"factor_twice",
     [](ModelGraph &g) {
       g.segments[0].ops[0].operands[1].factors = {2, 2};
     },
     "/segments/0/ops/0/operands/1/factors/1: factor \"o\" runs along two "
     "dimensions of \"w\""},
    {"skew", [](ModelGraph &g) { g.segments[0].ops[0].factors[0].skew = -1; },
     "/segments/0/ops/0/factors/0/skew: must be a number of at least 0"},
    {"tensor_index",
     [](ModelGraph &g) { g.segments[0].ops[2].operands[0].tensor = 9; },
     "/segments/0/ops/2/operands/0/tensor: is 9, but there are 6 tensors"},
    {"unmade",
     [](ModelGraph &g) {
       g.segments[0].carriedIn = {};
       g.segments[0].gradientOut = {};
       g.segments[0].repeat = 1;
     },
     "/segments/0/ops/0/operands/0/tensor: \"x\" is made by no operator and is "
     "no argument"},
    {"read_too_early",
     [](ModelGraph &g) {
       std::swap(g.segments[0].ops[1], g.segments[0].ops[2]);
       g.segments[0].ops[1].operands[0].tensor = 4;
     },
     "/segments/0/ops/1/operands/0/tensor: \"dx\" is read before operator 2 "
     "makes it"},
    {"circle",
     [](ModelGraph &g) {
       SegmentGraph &s = g.segments[0];
       s.ops[1].operands[0].tensor = 2;
       s.ops[0].operands[0].tensor = 4;
     },
     "/segments/0/ops/0/operands/0/tensor: \"dx\" is read before operator 1 "
     "makes it"},
    {"made_twice",
     [](ModelGraph &g) { g.segments[0].ops[1].results[0].tensor = 2; },
     "/segments/0/ops/1/results/0/tensor: \"y\" is already made by operator 0"},
    {"makes_an_argument",
     [](ModelGraph &g) { g.segments[0].ops[2].results[0].tensor = 1; },
     "/segments/0/ops/2/results/0/tensor: \"w\" is an argument and cannot be "
     "made"},
    {"makes_what_comes_in",
     [](ModelGraph &g) { g.segments[0].ops[1].results[0].tensor = 3; },
     "/segments/0/tensors/3: comes in from a neighbour but is made by operator "
     "1"},
    {"forward_after_backward",
     [](ModelGraph &g) { g.segments[0].ops[2].phase = Phase::forward; },
     "/segments/0/ops/2/phase: is \"forward\" after a backward operator"},
    {"role",
     [](ModelGraph &g) {
       std::swap(g.segments[0].ops[0].m, g.segments[0].ops[0].k);
     },
     "/segments/0/ops/0/m/0: factor \"i\" is in the second operand"},
    {"role_twice", [](ModelGraph &g) { g.segments[0].ops[0].batch = {0}; },
     "/segments/0/ops/0/batch/0: factor \"b\" already has the role m"},
    {"role_of_another_class",
     [](ModelGraph &g) { g.segments[0].ops[0].opClass = OpClass::memory; },
     "/segments/0/ops/0: has m, n, k or batch, but its class is not \"gemm\""},
    {"addend", [](ModelGraph &g) { g.segments[0].ops[0].addends = {2}; },
     "/segments/0/ops/0/addends/0: is 2, but there are 2 operands"},
    {"linear_group",
     [](ModelGraph &g) { g.segments[0].ops[0].linearGroups[1] = {-1}; },
     "/segments/0/ops/0/linear_groups/1/0: is -1, but there are 2 operands"},
    {"parameter_shape", [](ModelGraph &g) { g.parameters[0].shape[0] = 8; },
     "/segments/0/tensors/1/shape: differs from the shape of parameter \"w\""},
    {"parameter_splits",
     [](ModelGraph &g) { g.parameters[0].splits.pop_back(); },
     "/parameters/0/splits: names 1 splits for 2 dimensions"},
    {"variant_of_no_kind",
     [](ModelGraph &g) {
       g.segments[0].ops[0].kind = "";
       g.segments[0].ops[0].variant = "wide";
     },
     "/segments/0/ops/0/variant: is \"wide\", but there is no kind that it is "
     "of"},
    {"not_a_parameter",
     [](ModelGraph &g) { g.segments[0].tensors[0].parameter = 0; },
     "/segments/0/tensors/0/parameter: is 0, but \"x\" is not of kind "
     "\"parameter\""},
    {"batch_dim", [](ModelGraph &g) { g.segments[0].tensors[0].batchDim = 2; },
     "/segments/0/tensors/0/batch_dim: is 2, but the tensor has 2 dimensions"},
    {"gradients", [](ModelGraph &g) { g.segments[0].gradientIn = {}; },
     "/segments/0/gradient_in: lists 0 tensors for 1 carried out"},
    {"repetition", [](ModelGraph &g) { g.segments[0].carriedOut = {5}; },
     "/segments/0/carried_in/0: \"x\" and \"dw\" must have one shape"},
    {"accumulation",
     [](ModelGraph &g) { g.segments[0].accumulations[0].tensor = 0; },
     "/segments/0/accumulations/0: the gradient and its parameter must have "
     "one "
     "shape"},
    {"neighbours",
     [](ModelGraph &g) {
       g.segments.push_back(g.segments[0]);
       g.segments[1].carriedIn = {};
       g.segments[1].gradientOut = {};
     },
     "/segments/1/carried_in: lists 0 tensors for 1 carried out of the segment "
     "before"},
};

INSTANTIATE_TEST_SUITE_P(Promises, CheckBroken, testing::ValuesIn(kBroken),
                         [](const auto &broken) { return broken.param.name; });

TEST(Check, ReportsEveryErrorAtOnce) {
  ModelGraph graph = toy();
  graph.parameters[0].copies = 0;
  graph.segments[0].repeat = 0;
  graph.segments[0].ops[1].flops = Flops{-1};
  EXPECT_EQ(check(graph).size(), 3u);
}

TEST(WithBatch, ScalesShapesFactorsAndFlops) {
  ModelGraph half = withBatch(toy(), 3);
  const SegmentGraph &segment = half.segments[0];
  EXPECT_EQ(segment.tensors[0].shape, (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(segment.tensors[1].shape, (std::vector<std::int64_t>{4, 4}));
  EXPECT_EQ(segment.ops[0].factors[0].size, 3);
  EXPECT_EQ(segment.ops[0].factors[1].size, 4);
  EXPECT_DOUBLE_EQ(segment.ops[0].flops.value, 2.0 * 3 * 4 * 4);
  // The weight's gradient has no batch dimension but is a sum over the batch.
  EXPECT_DOUBLE_EQ(segment.ops[2].flops.value, 2.0 * 3 * 4 * 4);
  EXPECT_EQ(check(half), Lines{});
}

TEST(WithBatch, ScalesTokensPerSample) {
  // An expert has capacity for 12 tokens of 6 samples.
  ModelGraph graph = toy();
  graph.segments[0].tensors.push_back(
      {"tokens", {6, 2}, 4, TensorKind::input, Phase::forward, -1, 0});
  graph.segments[0].tensors.push_back(
      {"places", {12}, 2, TensorKind::activation, Phase::forward, -1, 0});
  ModelGraph more = withBatch(graph, 18);
  EXPECT_EQ(more.segments[0].tensors[6].shape[0], 18);
  EXPECT_EQ(more.segments[0].tensors[7].shape[0], 36);
}

TEST(WithBatch, RoundTrips) {
  const ModelGraph once = toy();
  const ModelGraph twice = withBatch(withBatch(once, 30), 6);
  const SegmentGraph &before = once.segments[0];
  const SegmentGraph &after = twice.segments[0];
  for (std::size_t t = 0; t < before.tensors.size(); ++t)
    EXPECT_EQ(after.tensors[t].shape, before.tensors[t].shape) << t;
  for (std::size_t o = 0; o < before.ops.size(); ++o) {
    EXPECT_EQ(after.ops[o].flops, before.ops[o].flops) << o;
    for (std::size_t f = 0; f < before.ops[o].factors.size(); ++f)
      EXPECT_EQ(after.ops[o].factors[f].size, before.ops[o].factors[f].size)
          << o << ", factor " << f;
  }
}

// `ofSegment` is a parameter's share of the parameter elements of its segment,
// which is the first segment that reads the parameter.
TEST(OpGraph, ParametersHaveAShareOfTheirSegment) {
  ModelGraph graph;
  graph.parameters.resize(4);
  graph.parameters[0].shape = {6, 4};
  graph.parameters[1].shape = {8};
  graph.parameters[2].shape = {3, 3};
  graph.parameters[3].shape = {8, 6, 4};
  graph.parameters[3].splits = {Split::expert, Split::row, Split::column};
  graph.segments.resize(2);
  auto read = [&](std::size_t segment, int parameter) {
    Tensor tensor;
    tensor.kind = TensorKind::parameter;
    tensor.parameter = parameter;
    graph.segments[segment].tensors.push_back(tensor);
  };
  read(0, 0);
  read(0, 1);
  read(0, 0); // counted once
  read(1, 1); // shared with segment 0
  read(1, 2);
  read(1, 3); // expert weights are not counted
  shareSegments(graph);
  EXPECT_DOUBLE_EQ(graph.parameters[0].ofSegment, 0.75);
  EXPECT_DOUBLE_EQ(graph.parameters[1].ofSegment, 0.25);
  EXPECT_EQ(graph.parameters[2].ofSegment, 1.0);
  EXPECT_EQ(graph.parameters[3].ofSegment, 1.0);
  EXPECT_EQ(toy().parameters[0].ofSegment, 1.0);
}

} // namespace
