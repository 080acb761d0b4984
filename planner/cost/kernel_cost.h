//===- kernel_cost.h - Time of products and attention -----------*- C++ -*-===//
//
// Computes the work of one rank, and the time of its products and attention.
//
// A product's output is cut into tiles, one per compute unit at a time. The
// tiles run in waves. Every wave, full or not, takes the time of a full wave
// plus a fixed time to fill and drain. The fastest of the device's tile shapes
// is used. If one wave leaves units idle, several units split the contraction
// of a tile. The model comes from NVIDIA, "Matrix multiplication background
// user's guide" (tile and wave quantisation, alignment), and the constants from
// docs/studies/step-time.
//
// With a causal mask, a fused attention kernel computes the blocks below the
// diagonal and, in full, the blocks on the diagonal: somewhat more than half of
// the scores. The kernel pads heads to a supported size and reaches a share of
// the peak that depends on the kernel and the device. Unfused software runs
// batched products and, between them, memory-bound kernels on the scores. The
// model comes from docs/studies/step-time, section 3.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_COST_KERNEL_COST_H
#define MTPLAN_PLANNER_COST_KERNEL_COST_H

#include <optional>
#include <vector>

#include "planner/graph/strategy.h"
#include "planner/machine/software.h"

namespace mtplan::planner {

/// Computes one rank's work of an operator that a strategy shards over a mesh,
/// or all of the operator's work if no strategy is given.
class LocalWork {
public:
  LocalWork(const Op &theOp, const std::vector<Tensor> &theTensors)
      : op(theOp), tensors(theTensors) {}
  LocalWork(const Op &theOp, const std::vector<Tensor> &theTensors,
            const Strategy &theStrategy, const Mesh &theMesh)
      : op(theOp), tensors(theTensors), strategy(&theStrategy), mesh(&theMesh) {
  }

  /// Returns the number of ranks that split `factor`.
  /// \param contiguous  whether to ignore context-parallel ranks (Factor::skew)
  double shardsOf(int factor, bool contiguous = false) const;
  double extentOf(int factor) const;
  /// Returns the product of the local sizes of `factors`.
  double extentOf(const std::vector<int> &factors) const;
  /// Returns the floating-point operations of the busiest rank.
  double flops() const;
  /// Returns the bytes of the local shards of all operands and results. A
  /// lookup table counts for at most the bytes of the first result.
  double traffic() const;
  /// Returns the bytes of the largest local shard of an operand or result.
  double largest() const;
  /// Returns the bytes of one rank's shard of the used tensor.
  double bytesOf(const Use &use) const;

private:
  const Op &op;
  const std::vector<Tensor> &tensors;
  const Strategy *strategy = nullptr;
  const Mesh *mesh = nullptr;
};

/// Describes `batch` products of an m x k and a k x n matrix.
struct ProductShape {
  double m = 1, n = 1, k = 1, batch = 1;
  double flops() const { return 2 * m * n * k * batch; }
};

/// Returns the sustained rate of large products. If the device has no rate for
/// a precision, fp8 falls back to bf16 and every precision to fp32.
FlopsPerSec productRate(const Device &device, Precision precision);

/// Returns the peak rate of products, with the fallbacks of productRate.
FlopsPerSec productPeak(const Device &device, Precision precision);

/// Returns the time of a product's arithmetic, without memory traffic.
/// \param relative  the rate relative to unbatched products, in (0, 1]
Seconds productTime(const ProductShape &shape, const Device &device,
                    Precision precision, double relative = 1.0);

/// Returns a lower bound of productTime for `flops` in any number of products
/// of any shape.
Seconds productLowerBound(Flops flops, const Device &device,
                          Precision precision, double relative = 1.0);

/// Holds the sizes of one rank's shard of an attention operator.
struct AttentionShape {
  double heads = 1; ///< heads times samples
  double queries = 1, keys = 1, headSize = 1;
  bool causal = false;
  double scores() const { return heads * queries * keys; }
};
/// Returns the sizes of the shard, or nothing if one of the factors of
/// mtp.attention is missing: b (samples), g and r (heads), s (queries), k
/// (keys) and d (the features of a head).
std::optional<AttentionShape> attentionShapeOf(const Op &op,
                                               const LocalWork &work);

/// Returns the floating-point operations of a fused kernel, including the extra
/// work on the diagonal and for padded heads.
Flops fusedFlops(const AttentionShape &shape, bool backward,
                 const AttentionKernel &kernel);

/// Returns the time of attention, without the gaps between kernels.
Seconds attentionTime(const Op &op, const LocalWork &work, const Device &device,
                      const Software &software, Precision precision);

/// Returns a time T for the unsharded operator such that T / ranks is a lower
/// bound of attentionTime on `ranks` ranks.
Seconds attentionLowerBound(const Op &op, const LocalWork &unsharded,
                            const Device &device, const Software &software,
                            Precision precision);

/// Returns the bytes of scores that one rank's shard of a forward attention
/// operator saves for backward; 0 for every other operator, and for kernels
/// that store no scores.
Bytes savedScores(const Op &op, const LocalWork &work, const Software &software,
                  Precision precision);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_COST_KERNEL_COST_H
