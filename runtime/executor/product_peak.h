//===- product_peak.h - Measures the peak rate of products ------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_PRODUCT_PEAK_H
#define MTPLAN_RUNTIME_EXECUTOR_PRODUCT_PEAK_H

#include <functional>

#include "runtime/backend/kernel.h"
#include "runtime/communicator/communicator.h"

namespace mtplan::runtime {

/// A clock; returns seconds since an arbitrary moment.
using SecondsNow = std::function<double()>;
/// Returns a monotonic clock.
SecondsNow steadyNow();

/// Measures a rank's peak flop/s, in square products of the plan's most
/// frequent product type, while all other ranks measure theirs. Collective over
/// all ranks. On CPU cores the products have size 512, and the measurement
/// takes some 10 ms. On a device they have the smallest size that takes a
/// millisecond, from 512 doubled up to 8192, or the largest that fits into
/// memory; it takes some 0.2 s.
double productPeak(const Plan &plan, World &world, Backend &backend,
                   const SecondsNow &now = steadyNow());

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_PRODUCT_PEAK_H
