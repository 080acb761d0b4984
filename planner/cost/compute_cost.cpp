//===- compute_cost.cpp - Time of one operator on one rank ----------------===//

#include "planner/cost/compute_cost.h"

#include <algorithm>
#include <cassert>

#include "planner/cost/attention_cost.h"
#include "planner/cost/product_cost.h"

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

double kernelsOf(const Op &op, const Software &software) {
  bool forward = op.phase == Phase::forward;
  if (op.opClass == OpClass::attention)
    return forward ? software.attention.forwardKernels
                   : software.attention.backwardKernels;
  if (op.opClass == OpClass::memory)
    if (const Pass *pass = passOf(op, software.passes))
      return forward ? pass->forwardKernels : pass->backwardKernels;
  return 1;
}

Seconds gaps(const Op &op, const Device &device, const Software &software) {
  return kernelsOf(op, software) *
         software.blockingLaunch.value_or(device.launch);
}

Seconds passTime(const Op &op, const LocalWork &work, const Device &device,
                 const Software &software) {
  return Bytes{passBytes(op, work, software)} / device.passRate();
}

Seconds gemmTime(const Op &op, const LocalWork &work, const Device &device,
                 Precision precision) {
  ProductShape shape{work.extentOf(op.m), work.extentOf(op.n),
                     work.extentOf(op.k), work.extentOf(op.batch)};
  // What the operator counts beyond its product takes in proportion.
  Seconds product =
      productTime(shape, device, precision) * (work.flops() / shape.flops());
  return std::max(product, Bytes{work.traffic()} / device.streamRate());
}

} // namespace

Seconds computeTime(const Op &op, const Strategy &strategy,
                    const std::vector<Tensor> &tensors, const Mesh &mesh,
                    const Machine &machine, const Software &software,
                    Precision precision) {
  const Device &device = machine.device;
  LocalWork work(op, tensors, strategy, mesh);
  Seconds gap = gaps(op, device, software);
  switch (op.opClass) {
  case OpClass::gemm:
    return gemmTime(op, work, device, precision) + gap;
  case OpClass::attention:
    return attentionTime(op, work, device, software, precision) + gap;
  case OpClass::memory:
    break;
  }
  return passTime(op, work, device, software) + gap;
}

Seconds computeFloor(const Op &op, const std::vector<Tensor> &tensors,
                     int ranks, const Machine &machine,
                     const Software &software, Precision precision) {
  assert(ranks >= 1);
  const Device &device = machine.device;
  LocalWork whole(op, tensors);
  Seconds time;
  switch (op.opClass) {
  case OpClass::gemm:
    time = std::max(productFloor(op.flops, device, precision),
                    Bytes{whole.traffic()} / device.streamRate());
    break;
  case OpClass::attention:
    time = attentionFloor(op, whole, device, software, precision);
    break;
  case OpClass::memory:
    time = passTime(op, whole, device, software);
    break;
  }
  return time / ranks + gaps(op, device, software);
}

Bytes savedBeside(const Op &op, const Strategy &strategy,
                  const std::vector<Tensor> &tensors, const Mesh &mesh,
                  const Software &software, Precision precision) {
  return savedScores(op, LocalWork(op, tensors, strategy, mesh), software,
                     precision);
}

} // namespace mtplan::planner
