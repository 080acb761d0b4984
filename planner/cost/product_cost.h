//===- product_cost.h - Time of a matrix product on one device --*- C++ -*-===//
//
// The output is cut into tiles, one per unit at a time. There are as many waves
// as the tiles need, each as long as a full one, and each with a fixed time to
// fill and drain. The fastest of the device's tile shapes counts. Units that
// one wave leaves idle split the contraction. Source of the form: NVIDIA,
// "Matrix multiplication background user's guide" (tile and wave quantisation,
// alignment); constants: docs/studies/step-time.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_COST_PRODUCT_COST_H
#define MTPLAN_PLANNER_COST_PRODUCT_COST_H

#include "planner/machine/machine.h"

namespace mtplan::planner {

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

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_COST_PRODUCT_COST_H
