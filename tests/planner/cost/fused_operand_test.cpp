//===- fused_operand_test.cpp - Fused operators, priced and checked -------===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/cost/compute_cost.h"
#include "planner/graph/op_graph.h"
#include "planner/search/price/phase_times.h"
#include "tests/planner/graph_check.h"
#include "tests/planner/random_model.h"

namespace mtplan::planner {
namespace {

using testing::ElementsAre, testing::HasSubstr, testing::Key;

constexpr double kNano = 1e-9;
enum Tensors : int { kX, kW, kY, kZ };
enum Factors : int { kB, kI, kO };

// Holds a model with y [8, 16] = x [8, 4] w and a consumer z of y, two bytes
// per element, on two ranks. A byte takes 1 ns, a launch 3 ns.
struct Followed {
  Followed() {
    SegmentGraph segment;
    segment.name = "h";
    auto add = [&](std::vector<std::int64_t> shape, TensorKind kind) {
      Tensor tensor;
      tensor.name = "t" + std::to_string(segment.tensors.size());
      tensor.shape = std::move(shape);
      tensor.kind = kind;
      segment.tensors.push_back(tensor);
    };
    add({8, 4}, TensorKind::input);
    add({4, 16}, TensorKind::input);
    add({8, 16}, TensorKind::activation);
    add({8, 16}, TensorKind::activation);
    Op product;
    product.kind = "einsum";
    product.opClass = OpClass::gemm;
    product.factors = {
        {"b", 8, Split::batch}, {"i", 4, Split::row}, {"o", 16, Split::column}};
    product.operands = {{kX, {kB, kI}}, {kW, {kI, kO}}};
    product.results = {{kY, {kB, kO}}};
    product.m = {kB}, product.k = {kI}, product.n = {kO};
    product.flops = Flops{1024};
    Op pass = product;
    pass.opClass = OpClass::memory;
    pass.m = pass.k = pass.n = {};
    pass.operands = {{kY, {kB, kO}}};
    pass.results = {{kZ, {kB, kO}}};
    segment.ops = {product, pass};
    segment.carriedOut = {kZ};
    model.segments = {segment};
    fuseConsumers(model, machine);
    setting.mesh = meshOf(1, 2);
    setting.machine = &machine;
  }

  SegmentGraph &segment() { return model.segments[0]; }
  Op &consumer() { return segment().ops[1]; }

  // Returns a plan that splits the product along `product` and z along `pass`.
  SegmentPlan planOf(int product, int pass) {
    SegmentPlan plan;
    plan.strategies = {{{kReplicated, product}}, {{kReplicated, pass}}};
    plan.made.resize(segment().tensors.size());
    for (std::size_t o = 0; o < 2; ++o)
      plan.made[o == 0 ? kY : kZ] =
          resultLayout(segment().ops[o], plan.strategies[o], 0);
    return plan;
  }

  double nanoseconds(const SegmentPlan &plan) {
    const std::vector<OpRun> runs =
        opRunsOf(segment(), machine.device, defaultSoftware(),
                 machine.defaultPrecision, 2);
    return operatorTime(segment(), plan, 1, runs[1], setting).value / kNano;
  }

  Machine machine = roundMachine();
  Setting setting;
  ModelGraph model;
};

// A rank's shard of y or z has 128 bytes.
TEST(FusedOperand, NeedsTheLayoutOfTheResult) {
  Followed one;
  ASSERT_EQ(check(one.model), std::vector<std::string>{});
  // The fused kernel writes z instead of y, so z takes no more time.
  EXPECT_NEAR(one.nanoseconds(one.planOf(kO, kO)), 0.0, 1e-9);
  EXPECT_NEAR(one.nanoseconds(one.planOf(kO, kB)), 2 * 128 + 3, 1e-9);
  EXPECT_NEAR(one.nanoseconds(one.planOf(kReplicated, kO)), 2 * 128 + 3, 1e-9);
  // A partial y has another layout than the operand of z, so z is not fused.
  EXPECT_NEAR(one.nanoseconds(one.planOf(kI, kReplicated)), 2 * 256 + 3, 1e-9);
  // If y has another reader, the fused kernel writes it, too.
  one.segment().carriedOut.push_back(kY);
  EXPECT_NEAR(one.nanoseconds(one.planOf(kO, kO)), 128, 1e-9);
  EXPECT_NEAR(one.nanoseconds(one.planOf(kO, kB)), 2 * 128 + 3, 1e-9);
}

TEST(FusedOperand, NeedsAMachineThatFusesTheKernels) {
  for (int without = 0; without < 3; ++without) {
    Followed one;
    if (without == 0)
      one.machine.device.kernels.fusions = {};
    else if (without == 1)
      one.machine.device.kernels.software = "another";
    else
      one.consumer().variant = "unlike";
    EXPECT_NEAR(one.nanoseconds(one.planOf(kO, kO)), 2 * 128 + 3, 1e-9);
  }
}

TEST(FusedOperand, UsesTheRateOfItsKernel) {
  Followed one;
  one.segment().carriedOut.push_back(kY);
  one.machine.device.kernels.passes["followed"] = {BytesPerSec{}, BytesPerSec{},
                                                   BytesPerSec{0.25e9}};
  EXPECT_NEAR(one.nanoseconds(one.planOf(kO, kO)), 4 * 128, 1e-9);
  EXPECT_NEAR(one.nanoseconds(one.planOf(kO, kB)), 4 * 2 * 128 + 3, 1e-9);
}

// A memory-bound operator may also have a fused consumer, if the machine lists
// the fusion.
TEST(FusedOperand, MayComeFromAPass) {
  Followed one;
  Op &maker = one.segment().ops[0];
  maker.kind = "pass";
  maker.opClass = OpClass::memory;
  maker.m = maker.k = maker.n = {};
  ASSERT_EQ(check(one.model), std::vector<std::string>{});
  const SegmentPlan both = one.planOf(kO, kO);
  for (std::vector<std::string> &names : one.machine.device.kernels.fusions)
    names = {"followed"};
  EXPECT_NEAR(one.nanoseconds(both), 2 * 128 + 3, 1e-9);
  for (std::vector<std::string> &names : one.machine.device.kernels.fusions)
    names = {"pass+followed"};
  EXPECT_NEAR(one.nanoseconds(both), 0.0, 1e-9);
  EXPECT_NEAR(one.nanoseconds(one.planOf(kO, kB)), 2 * 128 + 3, 1e-9);
  EXPECT_THAT(kindTimesOf(one.model, both, one.setting),
              ElementsAre(Key("pass")));
}

// A fused pair is one instruction, whose time is counted as the producer's.
TEST(FusedOperand, CountsAsItsProducer) {
  Followed one;
  one.segment().carriedOut.push_back(kY);
  auto kinds = [&](int product, int pass) {
    return kindTimesOf(one.model, one.planOf(product, pass), one.setting);
  };
  std::map<std::string, Seconds> apart = kinds(kO, kB), both = kinds(kO, kO);
  EXPECT_NEAR(apart.at("followed").value / kNano, 2 * 128 + 3, 1e-9);
  EXPECT_FALSE(both.contains("followed"));
  EXPECT_NEAR((both.at("einsum") - apart.at("einsum")).value / kNano, 128,
              1e-9);
}

TEST(FusedOperand, KeepsTheLowerBound) {
  for (bool alone : {true, false})
    for (double rate : {0.0, 0.25e9}) {
      Followed one;
      if (!alone)
        one.segment().carriedOut.push_back(kY);
      one.machine.device.kernels.passes["followed"] = {
          BytesPerSec{}, BytesPerSec{}, BytesPerSec{rate}};
      const std::vector<OpRun> runs =
          opRunsOf(one.segment(), one.machine.device, defaultSoftware(),
                   one.machine.defaultPrecision, 2);
      const double bound =
          computeLowerBound(one.consumer(), runs[1], one.segment().tensors, 2,
                            one.machine, defaultSoftware())
              .value;
      EXPECT_NEAR(bound, one.nanoseconds(one.planOf(kO, kO)) * kNano, 1e-18);
    }
}

TEST(FusedOperand, InvalidFusionsAreRejected) {
  auto complaint = [](auto change) {
    Followed one;
    change(one.segment());
    const std::vector<std::string> errors = check(one.model);
    return errors.empty() ? "" : errors.front();
  };
  const std::string at = "/segments/0/ops/1/follows: ";
  EXPECT_EQ(complaint([](SegmentGraph &s) { s.ops[1].fusedOperand = 1; }),
            at + "is 1, but there are 1 operands");
  EXPECT_EQ(complaint([](SegmentGraph &s) {
              s.ops[1].phase = Phase::backward;
              s.tensors[kZ].phase = Phase::backward;
              s.carriedOut = {};
            }),
            at + "operand 0 is the first result of no product or pass of the "
                 "same phase");
  EXPECT_EQ(
      complaint([](SegmentGraph &s) {
        s.ops[0].opClass = OpClass::attention;
        s.ops[0].m = s.ops[0].n = s.ops[0].k = {};
      }),
      at + "operand 0 is the first result of no product or pass of the same "
           "phase");
  EXPECT_EQ(complaint([](SegmentGraph &s) {
              s.ops[1].operands[0].factors = {kB, -1};
            }),
            at + "operand 0 does not run along the factors of the result");
  EXPECT_EQ(
      complaint([](SegmentGraph &s) { s.ops[1].opClass = OpClass::attention; }),
      at + "is of an operator that is not of class \"memory\"");
  EXPECT_THAT(
      complaint([](SegmentGraph &s) {
        s.ops.push_back(s.ops[1]);
        s.tensors.push_back(s.tensors[kZ]);
        s.ops[2].results[0].tensor = kZ + 1;
      }),
      HasSubstr("ops/2/follows: operator 0 is fused with another operator"));
}

} // namespace
} // namespace mtplan::planner
