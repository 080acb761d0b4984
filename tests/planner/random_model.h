//===- random_model.h - Small random training steps for tests ---*- C++ -*-===//
//
// The graphs do not compute real gradients. Operators that occur in real layers
// are combined at random, so that values have no, one or many readers in either
// phase. Numbers are drawn by plain modulo from mt19937_64, whose sequence the
// standard fixes.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_PLANNER_RANDOM_MODEL_H
#define MTPLAN_TESTS_PLANNER_RANDOM_MODEL_H

#include <random>

#include "planner/graph/op_graph.h"
#include "planner/machine/machine.h"

namespace mtplan::planner {

/// Returns a machine with 1 GB/s of memory and network bandwidth and 1 Gflop/s,
/// so that a byte and a flop take 1 ns each.
inline Machine roundMachine(double latency = 0.0) {
  Machine machine;
  Device &device = machine.device;
  device.memory = Bytes{1e6};
  device.bandwidth = BytesPerSec{1e9};
  device.fp32 = device.bf16 = FlopsPerSec{1e9};
  NetworkLevel level;
  level.bandwidth = BytesPerSec{1e9};
  level.latency = Seconds{latency};
  machine.levels = {level};
  return machine;
}

class RandomModel {
public:
  static constexpr std::int64_t kSamples = 4, kPositions = 4, kWidth = 8;

  explicit RandomModel(unsigned seed) : random(seed) {}

  int draw(int low, int high) {
    auto span = static_cast<unsigned long>(high - low) + 1;
    return low + static_cast<int>(random() % span);
  }
  bool oneIn(int n) { return draw(1, n) == 1; }

  ModelGraph model(int segments, int forwardOps, int backwardOps) {
    ModelGraph graph;
    bool tied = segments == 2 && oneIn(3);
    for (int s = 0; s < segments; ++s) {
      graph.segments.emplace_back();
      SegmentGraph &segment = graph.segments.back();
      segment.name = "segment" + std::to_string(s);
      // The first and the last of several segments do not repeat.
      bool inner = s > 0 && s + 1 < segments;
      segment.repeat = inner || (segments == 1 && oneIn(2)) ? draw(1, 3) : 1;
      int parameter = tied && s == 1 ? 0 : addParameter(graph, segment);
      graph.parameters[static_cast<std::size_t>(parameter)].shared = tied;
      fill(segment, parameter, segment.repeat > 1 || s > 0,
           segment.repeat > 1 || s + 1 < segments, forwardOps, backwardOps);
    }
    return graph;
  }

private:
  static int addParameter(ModelGraph &graph, const SegmentGraph &segment) {
    Parameter parameter;
    parameter.name = segment.name + ".weight";
    parameter.shape = {kWidth, kWidth};
    parameter.splits = {Split::row, Split::column};
    parameter.copies = segment.repeat;
    graph.parameters.push_back(parameter);
    return static_cast<int>(graph.parameters.size()) - 1;
  }

  static int addTensor(SegmentGraph &segment, std::vector<std::int64_t> shape,
                       TensorKind kind, Phase phase) {
    Tensor tensor;
    tensor.name = segment.name + ".t" + std::to_string(segment.tensors.size());
    tensor.batchDim = shape.size() == 3 ? 0 : -1;
    tensor.shape = std::move(shape);
    tensor.kind = kind;
    tensor.phase = phase;
    segment.tensors.push_back(tensor);
    return static_cast<int>(segment.tensors.size()) - 1;
  }

  static int addStream(SegmentGraph &segment, TensorKind kind, Phase phase) {
    return addTensor(segment, {kSamples, kPositions, kWidth}, kind, phase);
  }

  static Op startOp(const SegmentGraph &segment, Phase phase) {
    Op op;
    op.name = segment.name + ".op" + std::to_string(segment.ops.size());
    op.phase = phase;
    op.factors = {{"b", kSamples, Split::batch, true, Reduction::sum, 0.0},
                  {"s", kPositions, Split::sequence, true, Reduction::sum, 0.0},
                  {"i", kWidth, Split::row, true, Reduction::sum, 0.0},
                  {"o", kWidth, Split::column, true, Reduction::sum, 0.0}};
    return op;
  }

  // Adds x [b, s, i] times w [i, o], or in backward times the transpose of w.
  int addProduct(SegmentGraph &segment, int x, int weight, Phase phase) {
    Op op = startOp(segment, phase);
    op.opClass = OpClass::gemm;
    bool transposed = phase == Phase::backward;
    int in = transposed ? 3 : 2, out = transposed ? 2 : 3;
    op.operands = {{x, {0, 1, in}}, {weight, {2, 3}}};
    op.m = {0, 1};
    op.k = {in};
    op.n = {out};
    op.flops = Flops{2.0 * kSamples * kPositions * kWidth * kWidth};
    if (oneIn(2))
      op.linearGroups = {{0}};
    int y = addStream(segment, TensorKind::activation, phase);
    op.results = {{y, {0, 1, out}}};
    segment.ops.push_back(op);
    return y;
  }

  // Adds a weight's gradient, which sums over samples and positions.
  int addWeightGradient(SegmentGraph &segment, int x, int dy) {
    Op op = startOp(segment, Phase::backward);
    op.opClass = OpClass::gemm;
    op.operands = {{x, {0, 1, 2}}, {dy, {0, 1, 3}}};
    op.m = {2};
    op.k = {0, 1};
    op.n = {3};
    op.flops = Flops{2.0 * kSamples * kPositions * kWidth * kWidth};
    int dw = addTensor(segment, {kWidth, kWidth}, TensorKind::activation,
                       Phase::backward);
    op.results = {{dw, {2, 3}}};
    segment.ops.push_back(op);
    return dw;
  }

  int addPointwise(SegmentGraph &segment, const std::vector<int> &inputs,
                   Phase phase) {
    Op op = startOp(segment, phase);
    op.factors[2].split = Split::hidden;
    op.factors[2].divisible = !oneIn(3);
    op.factors.pop_back();
    std::vector<int> all;
    for (int input : inputs) {
      all.push_back(static_cast<int>(op.operands.size()));
      op.operands.push_back({input, {0, 1, 2}});
    }
    if (oneIn(2))
      op.linearGroups = {oneIn(2) ? all : std::vector<int>{all.back()}};
    int y = addStream(segment, TensorKind::activation, phase);
    op.results = {{y, {0, 1, 2}}};
    segment.ops.push_back(op);
    return y;
  }

  void addLoss(SegmentGraph &segment, int x) {
    Op op = startOp(segment, Phase::forward);
    op.factors.resize(2);
    op.operands = {{x, {0, 1, -1}}};
    int loss = addTensor(segment, {}, TensorKind::activation, Phase::forward);
    op.results = {{loss, {}}};
    segment.ops.push_back(op);
    segment.reported = {loss};
  }

  void fill(SegmentGraph &segment, int parameter, bool enters, bool leaves,
            int forwardOps, int backwardOps) {
    int weight = addTensor(segment, {kWidth, kWidth}, TensorKind::parameter,
                           Phase::forward);
    segment.tensors[static_cast<std::size_t>(weight)].parameter = parameter;
    int x =
        addStream(segment, enters ? TensorKind::activation : TensorKind::input,
                  Phase::forward);
    if (enters)
      segment.carriedIn = {x};
    std::vector<int> values{x};
    auto any = [&] {
      return values[static_cast<std::size_t>(
          draw(0, static_cast<int>(values.size()) - 1))];
    };
    for (int i = 0; i < forwardOps; ++i)
      values.push_back(
          i == 0 || oneIn(3)
              ? addProduct(segment, any(), weight, Phase::forward)
              : addPointwise(segment, {any(), values.back()}, Phase::forward));
    if (leaves) {
      segment.carriedOut = {values.back()};
      int dy = addStream(segment, TensorKind::activation, Phase::backward);
      segment.gradientIn = {dy};
      values.push_back(dy);
    } else {
      addLoss(segment, values.back());
    }
    int dw = addWeightGradient(segment, any(), any());
    segment.accumulations = {{dw, parameter}};
    for (int i = 0; i < backwardOps; ++i)
      values.push_back(
          oneIn(2)
              ? addProduct(segment, values.back(), weight, Phase::backward)
              : addPointwise(segment, {any(), values.back()}, Phase::backward));
    if (enters)
      segment.gradientOut = {values.back()};
  }

  std::mt19937_64 random;
};

/// Marks memory-bound operators as fused consumers of operators whose first
/// result they read, and lets the machine fuse both.
inline void fuseConsumers(ModelGraph &graph, Machine &machine) {
  for (SegmentGraph &segment : graph.segments) {
    std::vector<bool> isFused(segment.ops.size(), false);
    for (Op &op : segment.ops)
      for (std::size_t o = 0; o < segment.ops.size(); ++o) {
        const Op &maker = segment.ops[o];
        if (op.opClass != OpClass::memory || op.fusedOperand >= 0 ||
            isFused[o] || maker.opClass == OpClass::attention ||
            maker.phase != op.phase)
          continue;
        for (std::size_t i = 0; i < op.operands.size(); ++i)
          if (op.operands[i].tensor == maker.results[0].tensor &&
              op.operands[i].factors == op.results[0].factors) {
            op.kind = "followed";
            op.fusedOperand = static_cast<int>(i);
            isFused[o] = true;
            break;
          }
      }
  }
  machine.device.launch = Seconds{3e-9};
  machine.device.kernels.software = "mtplan";
  for (std::vector<std::string> &names : machine.device.kernels.fusions)
    names = {"followed", "followed+followed"};
}

} // namespace mtplan::planner

#endif // MTPLAN_TESTS_PLANNER_RANDOM_MODEL_H
