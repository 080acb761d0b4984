//===- compute_bound_test.cpp - No strategy beats the bound ---------------===//
//
// The search's lower bound must not exceed the time of any operator on any
// rank, for every software and machine; otherwise the search could prune an
// optimum.
//
//===----------------------------------------------------------------------===//

#include <random>

#include <gtest/gtest.h>

#include "planner/cost/compute_cost.h"
#include "planner/machine/machine_json.h"
#include "planner/machine/software_json.h"
#include "tests/planner/cost/op_case.h"
#include "tests/planner/plain_times.h"

namespace mtplan::planner {
namespace {

class RandomOp {
public:
  explicit RandomOp(unsigned seed) : random(seed) {}

  std::int64_t draw(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(
                     random() % static_cast<std::uint64_t>(high - low + 1));
  }

  OpCase attention() {
    return attentionCase(8 * draw(1, 4), 8 * draw(1, 400), 8 * draw(1, 5),
                         draw(1, 3), draw(1, 200),
                         draw(0, 1) ? Phase::forward : Phase::backward,
                         draw(0, 1) != 0, draw(0, 1) ? 2 : 4);
  }

  OpCase product() {
    OpCase c;
    std::int64_t m = 8 * draw(1, 900), n = 8 * draw(1, 900),
                 k = 8 * draw(1, 900);
    c.op.opClass = OpClass::gemm;
    c.op.factors = {{"m", m, Split::batch, true, Reduction::sum, 0.0},
                    {"n", n, Split::column, true, Reduction::sum, 0.0},
                    {"k", k, Split::row, true, Reduction::sum, 0.0}};
    c.op.operands = {{0, {0, 2}, false}, {1, {2, 1}, false}};
    c.op.results = {{2, {0, 1}, false}};
    c.op.linearGroups = {{0}};
    c.op.m = {0}, c.op.n = {1}, c.op.k = {2};
    c.op.flops = Flops{2.0 * double(m) * double(n) * double(k)};
    add(c, {m, k}), add(c, {k, n}), add(c, {m, n});
    return c;
  }

  OpCase pass() {
    static constexpr const char *kKinds[] = {"layer_norm",
                                             "rms_norm_grad",
                                             "add",
                                             "activation",
                                             "swiglu",
                                             "rope",
                                             "sum",
                                             "dropout",
                                             "vocab_max",
                                             "scale",
                                             "cross_entropy_grad"};
    OpCase c;
    std::int64_t b = 8 * draw(1, 900), h = 8 * draw(1, 900);
    c.op.kind = kKinds[draw(0, 10)];
    c.op.phase = draw(0, 1) ? Phase::forward : Phase::backward;
    c.op.factors = {{"b", b, Split::batch, true, Reduction::sum, 0.0},
                    {"h", h, Split::column, true, Reduction::sum, 0.0}};
    c.op.operands = {{0, {0, 1}, false}, {1, {1}, false}};
    c.op.results = {{2, {0, 1}, false}};
    add(c, {b, h}), add(c, {h}), add(c, {b, h});
    return c;
  }

private:
  static void add(OpCase &c, std::vector<std::int64_t> shape) {
    Tensor tensor;
    tensor.shape = std::move(shape);
    c.tensors.push_back(tensor);
  }

  std::mt19937_64 random;
};

TEST(ComputeLowerBound, NoStrategyIsFasterOnAnyMachineUnderAnySoftware) {
  Mesh mesh{{{"dp", 2}, {"tp", 4}}};
  AxisRule any{
      {Split::batch, Split::sequence, Split::row, Split::column, Split::head},
      true};
  RandomOp random(3);
  int tight = 0, tried = 0;
  for (const std::string &machineName : presetNames()) {
    Machine machine = loadMachine(machineName);
    for (const std::string &softwareName : softwareNames()) {
      SCOPED_TRACE(testing::Message()
                   << machineName << " under " << softwareName);
      Software software = loadSoftware(softwareName);
      for (int round = 0; round < 30; ++round) {
        OpCase c = round % 3 == 0   ? random.attention()
                   : round % 3 == 1 ? random.product()
                                    : random.pass();
        Precision precision = machine.defaultPrecision;
        double bound =
            computeLowerBound(c.op, c.tensors, 8, machine, software, precision)
                .value;
        ASSERT_GE(bound, 0);
        for (const Strategy &s : strategiesOf(c.op, mesh, {any, any})) {
          double time = computeTime(c.op, s, c.tensors, mesh, machine, software,
                                    precision)
                            .value;
          ASSERT_LE(bound, time * (1 + 1e-12));
          ++tried;
          tight += bound > 0.99 * time;
        }
      }
    }
  }
  // A bound of zero never exceeds a time, so some bounds must be tight.
  EXPECT_GT(tight, tried / 50);
}

} // namespace
} // namespace mtplan::planner
