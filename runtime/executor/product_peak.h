//===- product_peak.h - Measures the peak rate of products ------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_PRODUCT_PEAK_H
#define MTPLAN_RUNTIME_EXECUTOR_PRODUCT_PEAK_H

#include <functional>

#include "runtime/backend/kernel.h"
#include "runtime/communicator/communicator.h"

namespace mtplan::runtime {

using SecondsNow = std::function<double()>;
/// Returns a monotonic clock, in seconds since an arbitrary moment.
SecondsNow steadyNow();

/// Measures a rank's peak flop/s while all other ranks measure theirs. All
/// ranks must call this together. The measurement runs square products of the
/// plan's most frequent product type. On CPU cores, the products have size 512,
/// and the measurement takes about 10 ms. On a device, the size doubles from
/// 512 on until one product takes a millisecond, the size is 8192, or memory is
/// insufficient. The measurement then takes about 0.2 s.
double productPeak(const Plan &plan, World &world, Backend &backend,
                   const SecondsNow &now = steadyNow());

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_PRODUCT_PEAK_H
