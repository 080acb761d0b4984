//===- compute_cost.cpp - Time of one operator on one rank ----------------===//

#include "planner/cost/compute_cost.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "planner/cost/kernel_cost.h"
#include "planner/integers.h"

namespace mtplan::planner {

namespace {

// Returns the software's figures for a memory-bound operator, or null. If there
// are no figures, the bytes follow from crossEntropyShare() or from the
// operands and results.
const Pass *passOf(const Op &op, const Passes &passes) {
  // The order is that of PassKind.
  constexpr Pass Passes::*kFigures[] = {nullptr,
                                        &Passes::layerNorm,
                                        &Passes::rmsNorm,
                                        &Passes::residual,
                                        &Passes::activation,
                                        &Passes::gated,
                                        &Passes::rope,
                                        &Passes::dropout,
                                        &Passes::biasGradient,
                                        nullptr,
                                        nullptr};
  Pass Passes::*figures = kFigures[static_cast<std::size_t>(op.pass)];
  bool isForwardBias =
      op.pass == PassKind::biasGradient && op.phase == Phase::forward;
  return figures && !isForwardBias ? &(passes.*figures) : nullptr;
}

// Returns the operator's share of Software::crossEntropy. In forward, each of
// two operators reads the logits; in backward, one operator reads the logits
// and writes their gradient.
double crossEntropyShare(const Op &op) {
  return op.pass == PassKind::logitsRead       ? 0.25
         : op.pass == PassKind::logitsGradient ? 0.5
                                               : 0.0;
}

double passBytes(const Op &op, const LocalWork &work,
                 const Software &software) {
  // The figures are bytes per 16-bit element.
  if (const Pass *pass = passOf(op, software.passes))
    return work.largest() / 2 *
           (op.phase == Phase::forward ? pass->forwardBytes
                                       : pass->backwardBytes);
  if (double share = crossEntropyShare(op); share > 0)
    return work.largest() / 2 * share * software.crossEntropy;
  return work.traffic();
}

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
  double saved = 0.0;
  if (run.savedPasses > 0)
    saved = run.savedPasses * work.bytesOf(op.operands[at(op.fusedOperand)]);
  auto left = [&](double bytes) { return Bytes{std::max(0.0, bytes - saved)}; };
  if (BytesPerSec own = measuredRate(op, run, device, software); own.value > 0)
    return left(work.traffic()) / own;
  return left(passBytes(op, work, software)) / device.passRate();
}

struct ProductBytes {
  double first, second, result;
};
ProductBytes bytesOf(const Op &op, const LocalWork &work) {
  return {work.bytesOf(op.operands[0]), work.bytesOf(op.operands[1]),
          work.bytesOf(op.results[0])};
}

// Returns the bytes that a product reads and writes. 8-bit operands are half as
// large as 16-bit ones. Batched products divide the traffic of their common
// operand or sum equally.
Bytes productTraffic(const Op &op, const OpRun &run, const LocalWork &work) {
  if (run.batched == 1.0 && run.precision != Precision::fp8)
    return Bytes{work.traffic()};
  ProductBytes bytes = bytesOf(op, work);
  double rest = work.traffic() - (bytes.first + bytes.second + bytes.result);
  (run.batchesSums ? bytes.result : bytes.first) /= run.batched;
  double width = run.precision == Precision::fp8 ? 0.5 : 1.0;
  return Bytes{width * (bytes.first + bytes.second) + bytes.result + rest};
}

Seconds castTime(const Op &op, const OpRun &run, const LocalWork &work,
                 const Device &device) {
  if (run.firstCast == 0.0 && run.secondCast == 0.0)
    return {};
  ProductBytes bytes = bytesOf(op, work);
  return Bytes{(run.firstCast * bytes.first + run.secondCast * bytes.second) /
               2} /
         device.passRate();
}

// Returns the extra traffic of a tiled product: every tile but the first reads
// the untiled operand again or, if the contraction is tiled, reads and writes
// the result again.
Bytes repeatedTraffic(const Op &op, const OpRun &run, const LocalWork &work) {
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
  double &batched = run.batchesSums ? shape.k : shape.n;
  batched = std::round(batched * run.batched);
  // The time is scaled to the operator's flops. The operator may have more
  // flops than the product alone, and `shape` covers all products of a batch.
  Seconds product = productTime(shape, device, run.precision) *
                    (work.flops() / shape.flops());
  Bytes traffic = productTraffic(op, run, work);
  if (run.tiles > 1) {
    // Tiles never take less time than the untiled product, because a kernel
    // could tile that product itself.
    double &cut = run.along == &Op::m   ? shape.m
                  : run.along == &Op::n ? shape.n
                  : run.along == &Op::k ? shape.k
                                        : shape.batch;
    double total = shape.flops();
    cut = std::ceil(cut / run.tiles);
    product = std::max(product, run.tiles *
                                    productTime(shape, device, run.precision) *
                                    (work.flops() / total));
    traffic += repeatedTraffic(op, run, work);
  }
  return std::max(product, traffic / device.streamRate()) +
         castTime(op, run, work, device);
}

} // namespace

double launchesOf(const Op &op, const OpRun &run, const Device &device,
                  const Software &software) {
  return run.inProduct ? 0 : run.tiles * kernelsOf(op, run, device, software);
}

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
  return time * run.slowdown;
}

Seconds unfusedTime(const Op &op, const OpRun &run, const Strategy &strategy,
                    const Layout &made, const std::vector<Tensor> &tensors,
                    const Mesh &mesh, const Machine &machine,
                    const Software &software) {
  if (run.savedPasses == 0 ||
      made == operandLayout(op, strategy, op.fusedOperand))
    return {};
  OpRun alone = run;
  alone.savedPasses = 0;
  return computeTime(op, alone, strategy, tensors, mesh, machine, software) -
         computeTime(op, run, strategy, tensors, mesh, machine, software);
}

Seconds computeLowerBound(const Op &op, const OpRun &run,
                          const std::vector<Tensor> &tensors, int ranks,
                          const Machine &machine, const Software &software) {
  assert(ranks >= 1);
  const Device &device = machine.device;
  if (run.inProduct)
    return {};
  LocalWork unsharded(op, tensors);
  Seconds time;
  switch (op.opClass) {
  case OpClass::gemm:
    time = std::max(productLowerBound(op.flops, device, run.precision),
                    productTraffic(op, run, unsharded) / device.streamRate()) +
           castTime(op, run, unsharded, device);
    break;
  case OpClass::attention:
    time = attentionLowerBound(op, unsharded, device, software, run.precision);
    break;
  case OpClass::memory:
    time = passTime(op, run, unsharded, device, software);
    break;
  }
  return (time / ranks + gaps(op, run, device, software)) * run.slowdown;
}

Bytes savedBeside(const Op &op, const Strategy &strategy,
                  const std::vector<Tensor> &tensors, const Mesh &mesh,
                  const Software &software, Precision precision) {
  if (op.phase == Phase::backward)
    return {};
  const LocalWork work(op, tensors, strategy, mesh);
  if (op.opClass == OpClass::attention)
    return savedScores(op, work, software, precision) +
           Bytes{work.bytesOf(op.operands.front()) / 2 *
                 software.attention.copyKept};
  if (const Pass *pass = passOf(op, software.passes))
    return Bytes{work.largest() / 2 * pass->kept};
  // The shares of forward add up to a half.
  return Bytes{work.largest() / 2 * 2 * crossEntropyShare(op) *
               software.memory.crossEntropy};
}

} // namespace mtplan::planner
