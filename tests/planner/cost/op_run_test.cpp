//===- op_run_test.cpp - Batched products, fp8, the slowest device --------===//

#include <cmath>

#include <gtest/gtest.h>

#include "planner/cost/compute_cost.h"
#include "planner/cost/kernel_cost.h"
#include "planner/machine/machine_json.h"
#include "planner/machine/software_json.h"

namespace mtplan::planner {
namespace {

// The segment computes a = norm(x), y = a W and z = a V, with `a` [rows, in]
// and weights [in, out]. Backward computes the gradients of both weights, and
// that of `a` by two products and a sum.
class Pair {
public:
  Pair(std::int64_t rows, std::int64_t in, std::int64_t outY,
       std::int64_t outZ) {
    segment.repeat = 2;
    auto tensor = [&](std::int64_t m, std::int64_t n, TensorKind kind,
                      Phase phase) {
      Tensor made;
      made.shape = {m, n};
      made.kind = kind;
      made.phase = phase;
      segment.tensors.push_back(made);
      return static_cast<int>(segment.tensors.size()) - 1;
    };
    auto activation = TensorKind::activation;
    int x = tensor(rows, in, activation, Phase::forward);
    int a = tensor(rows, in, activation, Phase::forward);
    int w = tensor(in, outY, TensorKind::parameter, Phase::forward);
    int v = tensor(in, outZ, TensorKind::parameter, Phase::forward);
    int y = tensor(rows, outY, activation, Phase::forward);
    int z = tensor(rows, outZ, activation, Phase::forward);
    int dy = tensor(rows, outY, activation, Phase::backward);
    int dz = tensor(rows, outZ, activation, Phase::backward);
    int aw = tensor(rows, in, activation, Phase::backward);
    int av = tensor(rows, in, activation, Phase::backward);
    int da = tensor(rows, in, activation, Phase::backward);
    int dw = tensor(in, outY, activation, Phase::backward);
    int dv = tensor(in, outZ, activation, Phase::backward);
    Op norm;
    norm.kind = "rms_norm";
    norm.pass = PassKind::rmsNorm;
    norm.factors = {{"r", rows}, {"i", in}};
    norm.operands = {{x, {0, 1}}};
    norm.results = {{a, {0, 1}}};
    segment.ops.push_back(norm);
    // `first`, `second` and `third` are the factors of the first operand, of
    // the second operand and of the result.
    auto product = [&](int one, int two, int result, std::vector<int> first,
                       std::vector<int> second, std::vector<int> third,
                       std::int64_t out, Phase phase) {
      Op op;
      op.kind = "einsum";
      op.opClass = OpClass::gemm;
      op.phase = phase;
      op.factors = {{"r", rows}, {"i", in}, {"o", out}};
      op.operands = {{one, first}, {two, second}};
      op.results = {{result, third}};
      for (int f = 0; f < 3; ++f) {
        auto has = [&](const std::vector<int> &letters) {
          return letters[0] == f || letters[1] == f;
        };
        (!has(third) ? op.k : has(first) ? op.m : op.n).push_back(f);
      }
      op.flops = {2.0 * double(rows) * double(in) * double(out)};
      segment.ops.push_back(op);
    };
    product(a, w, y, {0, 1}, {1, 2}, {0, 2}, outY, Phase::forward);
    product(a, v, z, {0, 1}, {1, 2}, {0, 2}, outZ, Phase::forward);
    product(dy, w, aw, {0, 2}, {1, 2}, {0, 1}, outY, Phase::backward);
    product(a, dy, dw, {0, 1}, {0, 2}, {1, 2}, outY, Phase::backward);
    product(dz, v, av, {0, 2}, {1, 2}, {0, 1}, outZ, Phase::backward);
    Op add;
    add.kind = "add";
    add.pass = PassKind::residual;
    add.phase = Phase::backward;
    add.factors = {{"r", rows}, {"i", in}};
    add.operands = {{aw, {0, 1}}, {av, {0, 1}}};
    add.results = {{da, {0, 1}}};
    segment.ops.push_back(add);
    product(a, dz, dv, {0, 1}, {0, 2}, {1, 2}, outZ, Phase::backward);
  }

  double seconds(int op, const Software &software, Precision precision,
                 int devices = 1) const {
    auto at = static_cast<std::size_t>(op);
    std::vector<OpRun> runs =
        opRunsOf(segment, machine.device, software, precision, devices);
    const Op &one = segment.ops[at];
    Strategy strategy;
    strategy.axes = {kReplicated};
    Mesh mesh;
    mesh.axes = {{"tp", 1}};
    double time = computeTime(one, runs[at], strategy, segment.tensors, mesh,
                              machine, software)
                      .value;
    // The lower bound also holds for a product of a batch.
    EXPECT_LE(
        computeLowerBound(one, runs[at], segment.tensors, 1, machine, software)
            .value,
        time * (1 + 1e-12));
    return time;
  }

  SegmentGraph segment;
  Machine machine = loadMachine("dgx-h100");
};

enum { kNorm, kY, kZ, kYdx, kYdw, kZdx, kSum, kZdw };

Software plain(bool isFused) {
  Software software = defaultSoftware();
  software.batchesProducts = isFused;
  return software;
}

// Two products of 1024 and 3072 columns run as one of 4096 columns and share
// its time; the sum of input gradients takes no time.
TEST(OpRun, ProductsOfOneInputAreBatched) {
  Pair both(4096, 2048, 1024, 3072), one(4096, 2048, 4096, 64);
  Software batched = plain(true), apart = plain(false);
  const double launch = both.machine.device.launch.value;
  auto work = [&](int op) {
    return both.seconds(op, batched, Precision::bf16) - launch;
  };
  double total = one.seconds(kY, apart, Precision::bf16) - launch;
  EXPECT_NEAR(work(kY) + work(kZ), total, 1e-9 * total);
  EXPECT_NEAR(work(kZ), 3 * work(kY), 1e-9 * total);
  total = one.seconds(kYdw, apart, Precision::bf16) - launch;
  EXPECT_NEAR(work(kYdw) + work(kZdw), total, 1e-9 * total);
  total = one.seconds(kYdx, apart, Precision::bf16) - launch;
  EXPECT_NEAR(work(kYdx) + work(kZdx), total, 1e-9 * total);
  EXPECT_EQ(both.seconds(kSum, batched, Precision::bf16), 0.0);
  EXPECT_GT(both.seconds(kSum, apart, Precision::bf16), 0.0);
}

// Large products are faster in fp8 by the ratio of the rates: 0.58 of 1979
// Tflop/s in fp8 over 0.66 of 989 Tflop/s in bf16.
TEST(OpRun, ProductsOfLayersAreInFp8) {
  Pair pair(16384, 16384, 16384, 64);
  Software software = plain(false);
  double narrow = pair.seconds(kY, software, Precision::fp8);
  double wide = pair.seconds(kY, software, Precision::bf16);
  EXPECT_NEAR(wide / narrow, 1979 * 0.58 / (989.4 * 0.66), 0.03);
  EXPECT_EQ(pair.seconds(kNorm, software, Precision::fp8),
            pair.seconds(kNorm, software, Precision::bf16));
  // Casts move 1 byte per element of an input behind a norm, 5 bytes per
  // element of the weight and, once, 4 bytes per element of the gradient, at
  // the rate of memory-bound kernels.
  software.casts = {100, 1, 5, 4};
  const double rate = pair.machine.device.passRate().value;
  const double elements = 16384.0 * 16384.0;
  EXPECT_NEAR(pair.seconds(kY, software, Precision::fp8) - narrow,
              6 * elements / rate, 1e-9);
  EXPECT_NEAR(pair.seconds(kYdx, software, Precision::fp8) -
                  pair.seconds(kYdx, plain(false), Precision::fp8),
              4 * elements / rate, 1e-9);
  EXPECT_EQ(pair.seconds(kYdw, software, Precision::fp8),
            pair.seconds(kYdw, plain(false), Precision::fp8));
  // Products of a segment that occurs once stay in bf16.
  pair.segment.repeat = 1;
  EXPECT_EQ(pair.seconds(kY, software, Precision::fp8), wide);
}

// All compute takes 1 + spread sqrt(2 ln N) times as long on N devices.
TEST(OpRun, SlowestDeviceSetsTheTime) {
  Pair pair(4096, 2048, 1024, 3072);
  Software software = plain(false);
  for (int op : {kNorm, kY, kSum})
    EXPECT_DOUBLE_EQ(pair.seconds(op, software, Precision::bf16, 1024),
                     pair.seconds(op, software, Precision::bf16) *
                         (1 + 0.0092 * std::sqrt(2 * std::log(1024.0))));
}

// If each of four ranks has a quarter of the positions, the last has 7/16 of a
// causal mask's work. If each has an early and a late eighth, each has a
// quarter of the work.
TEST(LocalWork, ContextRanksShareAMaskEvenly) {
  Op op;
  op.factors = {{"s", 64, Split::sequence, true, Reduction::sum, 1.0}};
  op.flops = {1600.0};
  Strategy strategy;
  strategy.axes = {0};
  Mesh mesh;
  auto flops = [&](const char *axis) {
    mesh.axes = {{axis, 4}};
    return LocalWork(op, {}, strategy, mesh).flops();
  };
  EXPECT_DOUBLE_EQ(flops("tp"), 700.0);
  EXPECT_DOUBLE_EQ(flops("cp"), 400.0);
}

} // namespace
} // namespace mtplan::planner
