//===- compute_cost.cpp - Time of one operator on one rank ----------------===//

#include "planner/cost/compute_cost.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "planner/cost/attention_cost.h"
#include "planner/cost/product_cost.h"
#include "planner/index.h"

namespace mtplan::planner {

namespace {

// The software's figures for a kind of pass; null: it has none, and the
// operator reads its operands and writes its results.
const Pass *passOf(const Op &op, const Passes &passes) {
  auto is = [&](const char *kind, const char *gradient) {
    return op.kind == kind || op.kind == gradient;
  };
  if (is("layer_norm", "layer_norm_grad"))
    return &passes.layerNorm;
  if (is("rms_norm", "rms_norm_grad"))
    return &passes.rmsNorm;
  if (op.kind == "add")
    return &passes.residual;
  if (is("activation", "activation_grad"))
    return &passes.activation;
  if (is("swiglu", "swiglu_grad"))
    return &passes.gated;
  if (op.kind == "rope")
    return &passes.rope;
  if (op.kind == "dropout")
    return &passes.dropout;
  if (op.kind == "sum" && op.phase == Phase::backward)
    return &passes.biasGradient;
  return nullptr;
}

// Share of the cross-entropy's bytes: two passes over the logits forward, and
// backward one that reads and one that writes.
double crossEntropyShare(const Op &op) {
  if (op.kind == "vocab_max" || op.kind == "vocab_sum_exp")
    return 0.25;
  return op.kind == "cross_entropy_grad" ? 0.5 : 0.0;
}

// Bytes that an operator bound by memory moves.
double passBytes(const Op &op, const LocalWork &work,
                 const Software &software) {
  // Figures are per element of 16 bits.
  if (const Pass *pass = passOf(op, software.passes))
    return work.largest() / 2 *
           (op.phase == Phase::forward ? pass->forwardBytes
                                       : pass->backwardBytes);
  if (double share = crossEntropyShare(op); share > 0)
    return work.largest() / 2 * share * software.crossEntropy;
  return work.traffic();
}

// What the operator's own kernel was measured to reach; 0: nothing was.
BytesPerSec measuredRate(const Op &op, const OpRun &run, const Device &device,
                         const Software &software) {
  return measuredPassRate(software, device, op.kind, run.precision, op.variant);
}

double kernelsOf(const Op &op, const OpRun &run, const Device &device,
                 const Software &software) {
  bool forward = op.phase == Phase::forward;
  if (run.savedPasses > 0)
    return 0;
  if (op.opClass == OpClass::attention)
    return forward ? software.attention.forwardKernels
                   : software.attention.backwardKernels;
  if (op.opClass == OpClass::memory &&
      measuredRate(op, run, device, software).value == 0)
    if (const Pass *pass = passOf(op, software.passes))
      return forward ? pass->forwardKernels : pass->backwardKernels;
  return 1;
}

Seconds gaps(const Op &op, const OpRun &run, const Device &device,
             const Software &software) {
  return kernelsOf(op, run, device, software) *
         software.blockingLaunch.value_or(device.launch);
}

Seconds passTime(const Op &op, const OpRun &run, const LocalWork &work,
                 const Device &device, const Software &software) {
  const double saved =
      run.savedPasses > 0
          ? run.savedPasses * work.bytesOf(op.operands[at(op.follows)])
          : 0.0;
  auto left = [&](double bytes) { return Bytes{std::max(0.0, bytes - saved)}; };
  if (BytesPerSec own = measuredRate(op, run, device, software); own.value > 0)
    return left(work.traffic()) / own;
  return left(passBytes(op, work, software)) / device.passRate();
}

// Bytes of one rank's pieces of the first operand, the second and the result.
struct ProductBytes {
  double first, second, result;
};
ProductBytes bytesOf(const Op &op, const LocalWork &work) {
  return {work.bytesOf(op.operands[0]), work.bytesOf(op.operands[1]),
          work.bytesOf(op.results[0])};
}

// Through memory: operands of 8 bits are half as large. Of joined products
// each reads or writes its share of what they have in common.
Bytes productTraffic(const Op &op, const OpRun &run, const LocalWork &work) {
  if (run.joined == 1.0 && run.precision != Precision::fp8)
    return Bytes{work.traffic()};
  ProductBytes bytes = bytesOf(op, work);
  double rest = work.traffic() - (bytes.first + bytes.second + bytes.result);
  (run.joinsSum ? bytes.result : bytes.first) /= run.joined;
  double width = run.precision == Precision::fp8 ? 0.5 : 1.0;
  return Bytes{width * (bytes.first + bytes.second) + bytes.result + rest};
}

// Figures are per element of 16 bits.
Seconds castTime(const Op &op, const OpRun &run, const LocalWork &work,
                 const Device &device) {
  if (run.firstCast == 0.0 && run.secondCast == 0.0)
    return {};
  ProductBytes bytes = bytesOf(op, work);
  return Bytes{(run.firstCast * bytes.first + run.secondCast * bytes.second) /
               2} /
         device.passRate();
}

// What all tiles of a product read or write again: the operand that is not cut,
// or, of sums, the result.
Bytes againTraffic(const Op &op, const OpRun &run, const LocalWork &work) {
  ProductBytes bytes = bytesOf(op, work);
  double once = run.along == &Op::n   ? bytes.first
                : run.along == &Op::m ? bytes.second
                : run.along == &Op::k ? 2 * bytes.result
                                      : 0.0;
  return Bytes{(run.tiles - 1) * once};
}

Seconds gemmTime(const Op &op, const OpRun &run, const LocalWork &work,
                 const Device &device) {
  ProductShape shape{work.extentOf(op.m), work.extentOf(op.n),
                     work.extentOf(op.k), work.extentOf(op.batch)};
  double &joint = run.joinsSum ? shape.k : shape.n;
  joint = std::round(joint * run.joined);
  // What the operator counts beyond its product takes in proportion, and of a
  // joined product each has its share.
  Seconds product = productTime(shape, device, run.precision) *
                    (work.flops() / shape.flops());
  Bytes traffic = productTraffic(op, run, work);
  if (run.tiles > 1) {
    // No less than at once, which could be executed as tiles too.
    double &cut = run.along == &Op::m   ? shape.m
                  : run.along == &Op::n ? shape.n
                  : run.along == &Op::k ? shape.k
                                        : shape.batch;
    double whole = shape.flops();
    cut = std::ceil(cut / run.tiles);
    product = std::max(product, run.tiles *
                                    productTime(shape, device, run.precision) *
                                    (work.flops() / whole));
    traffic += againTraffic(op, run, work);
  }
  return std::max(product, traffic / device.streamRate()) +
         castTime(op, run, work, device);
}

} // namespace

Seconds computeTime(const Op &op, const OpRun &run, const Strategy &strategy,
                    const std::vector<Tensor> &tensors, const Mesh &mesh,
                    const Machine &machine, const Software &software) {
  const Device &device = machine.device;
  if (run.inProduct)
    return {};
  LocalWork work(op, tensors, strategy, mesh);
  Seconds time = run.tiles * gaps(op, run, device, software);
  switch (op.opClass) {
  case OpClass::gemm:
    time += gemmTime(op, run, work, device);
    break;
  case OpClass::attention:
    time += attentionTime(op, work, device, software, run.precision);
    break;
  case OpClass::memory:
    time += passTime(op, run, work, device, software);
    break;
  }
  return time * run.pace;
}

Seconds apartTime(const Op &op, const OpRun &run, const Strategy &strategy,
                  const Layout &made, const std::vector<Tensor> &tensors,
                  const Mesh &mesh, const Machine &machine,
                  const Software &software) {
  if (run.savedPasses == 0 || made == operandLayout(op, strategy, op.follows))
    return {};
  OpRun alone = run;
  alone.savedPasses = 0;
  return computeTime(op, alone, strategy, tensors, mesh, machine, software) -
         computeTime(op, run, strategy, tensors, mesh, machine, software);
}

Seconds computeTime(const Op &op, const Strategy &strategy,
                    const std::vector<Tensor> &tensors, const Mesh &mesh,
                    const Machine &machine, const Software &software,
                    Precision precision) {
  OpRun alone;
  alone.precision = precision;
  return computeTime(op, alone, strategy, tensors, mesh, machine, software);
}

Seconds computeFloor(const Op &op, const OpRun &run,
                     const std::vector<Tensor> &tensors, int ranks,
                     const Machine &machine, const Software &software) {
  assert(ranks >= 1);
  const Device &device = machine.device;
  if (run.inProduct)
    return {};
  LocalWork whole(op, tensors);
  Seconds time;
  switch (op.opClass) {
  case OpClass::gemm:
    time = std::max(productFloor(op.flops, device, run.precision),
                    productTraffic(op, run, whole) / device.streamRate()) +
           castTime(op, run, whole, device);
    break;
  case OpClass::attention:
    time = attentionFloor(op, whole, device, software, run.precision);
    break;
  case OpClass::memory:
    time = passTime(op, run, whole, device, software);
    break;
  }
  return (time / ranks + gaps(op, run, device, software)) * run.pace;
}

Seconds computeFloor(const Op &op, const std::vector<Tensor> &tensors,
                     int ranks, const Machine &machine,
                     const Software &software, Precision precision) {
  OpRun alone;
  alone.precision = precision;
  return computeFloor(op, alone, tensors, ranks, machine, software);
}

Bytes savedBeside(const Op &op, const Strategy &strategy,
                  const std::vector<Tensor> &tensors, const Mesh &mesh,
                  const Software &software, Precision precision) {
  return savedScores(op, LocalWork(op, tensors, strategy, mesh), software,
                     precision);
}

} // namespace mtplan::planner
