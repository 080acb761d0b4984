//===- kernel_cost.h - Time of products and attention -----------*- C++ -*-===//
//
// The work of one rank, and the time of products and of attention on it.
//
// A product's output is cut into tiles, one per unit at a time. There are as
// many waves as the tiles need, each as long as a full one, and each with a
// fixed time to fill and drain. The fastest of the device's tile shapes counts.
// Units that one wave leaves idle split the contraction. Source of the form:
// NVIDIA, "Matrix multiplication background user's guide" (tile and wave
// quantisation, alignment); constants: docs/studies/step-time.
//
// A fused attention kernel computes the causal half and the diagonal's blocks,
// with heads padded to a supported size, at a share of the peak that depends on
// kernel and device. Older software multiplies batches of score matrices with
// passes over the scores in between; scores that are saved for backward count
// in memory. Source of the form: docs/studies/step-time, section 3.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_COST_KERNEL_COST_H
#define MTPLAN_PLANNER_COST_KERNEL_COST_H

#include <optional>
#include <vector>

#include "planner/graph/strategy.h"
#include "planner/machine/software.h"

namespace mtplan::planner {

/// An operator split by a strategy over a mesh or, without a strategy, unsplit.
class LocalWork {
public:
  LocalWork(const Op &theOp, const std::vector<Tensor> &theTensors)
      : op(theOp), tensors(theTensors) {}
  LocalWork(const Op &theOp, const std::vector<Tensor> &theTensors,
            const Strategy &theStrategy, const Mesh &theMesh)
      : op(theOp), tensors(theTensors), strategy(&theStrategy), mesh(&theMesh) {
  }

  /// Returns the number of ranks that split `factor`.
  /// \param contiguous  whether context ranks do not count. They have an early
  /// and a late slice of every sequence, so that a mask removes as much from
  /// each
  double shardsOf(int factor, bool contiguous = false) const;
  /// Returns the local size of `factor`, or of several together.
  double extentOf(int factor) const;
  double extentOf(const std::vector<int> &factors) const;
  /// Returns the work of the busiest rank.
  double flops() const;
  /// Returns the bytes of the local shards of all operands and results that
  /// pass through memory.
  double traffic() const;
  /// Returns the bytes of the largest local shard of an operand or result.
  double largest() const;
  /// Returns the bytes of the local shard of what `use` touches.
  double bytesOf(const Use &use) const;

private:
  const Op &op;
  const std::vector<Tensor> &tensors;
  const Strategy *strategy = nullptr;
  const Mesh *mesh = nullptr;
};

/// `batch` products of m x k by k x n.
struct ProductShape {
  double m = 1, n = 1, k = 1, batch = 1;
  double flops() const { return 2 * m * n * k * batch; }
};

/// Returns the sustained rate of large products: the precision's own, or single
/// precision's if the device has no other.
FlopsPerSec productRate(const Device &device, Precision precision);

/// Returns the peak of the same precision.
FlopsPerSec productPeak(const Device &device, Precision precision);

/// Returns the time of the arithmetic, without memory.
/// \param relative  rate over that of plain products, (0, 1]
Seconds productTime(const ProductShape &shape, const Device &device,
                    Precision precision, double relative = 1.0);

/// Returns a lower bound of productTime for `flops` in any number of products
/// of any shape.
Seconds productLowerBound(Flops flops, const Device &device,
                          Precision precision, double relative = 1.0);

/// One rank's shard of an attention operator. The factors of mtp.attention have
/// fixed names: b and heads g, r; s queries; k keys; d features of a head. An
/// operator without them has no shape.
struct AttentionShape {
  double heads = 1; ///< times samples
  double queries = 1, keys = 1, headSize = 1;
  bool causal = false;
  double scores() const { return heads * queries * keys; }
};
std::optional<AttentionShape> attentionShapeOf(const Op &op,
                                               const LocalWork &work);

/// Returns a fused kernel's arithmetic, including the extra work on the
/// diagonal and for padded heads.
Flops fusedFlops(const AttentionShape &shape, bool backward,
                 const AttentionKernel &kernel);

/// Returns the time without gaps between kernels.
Seconds attentionTime(const Op &op, const LocalWork &work, const Device &device,
                      const Software &software, Precision precision);

/// Returns a lower bound of attentionTime for a share 1 / ranks of the whole
/// operator.
Seconds attentionLowerBound(const Op &op, const LocalWork &unsharded,
                            const Device &device, const Software &software,
                            Precision precision);

/// Returns the bytes that one rank's shard of a forward operator saves for
/// backward beside its operands and results: the scores; 0 for every other
/// operator and kernel.
Bytes savedScores(const Op &op, const LocalWork &work, const Software &software,
                  Precision precision);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_COST_KERNEL_COST_H
