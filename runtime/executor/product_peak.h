//===- product_peak.h - Measures the peak rate of products ------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_PRODUCT_PEAK_H
#define MTPLAN_RUNTIME_EXECUTOR_PRODUCT_PEAK_H

#include <functional>

#include "runtime/backend/kernel.h"
#include "runtime/communicator/communicator.h"

namespace mtplan::runtime {

/// Returns seconds since an arbitrary moment.
using SecondsNow = std::function<double()>;
/// Returns a monotonic clock.
SecondsNow steadyNow();

/// Measures a rank's peak flop/s, in square products of the plan's most
/// frequent product type, while all other ranks measure theirs. All ranks must
/// call this together. On CPU cores the products have size 512, and the
/// measurement takes some 10 ms. On a device the size is doubled, from 512 on,
/// until one product takes a millisecond, but at most to 8192 and to the
/// largest size that fits into memory; the measurement takes some 0.2 s.
double productPeak(const Plan &plan, World &world, Backend &backend,
                   const SecondsNow &now = steadyNow());

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_PRODUCT_PEAK_H
