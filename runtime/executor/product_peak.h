//===- product_peak.h - Measures the peak rate of products ------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_PRODUCT_PEAK_H
#define MTPLAN_RUNTIME_EXECUTOR_PRODUCT_PEAK_H

#include <functional>

#include "runtime/backend/kernel.h"
#include "runtime/communicator/communicator.h"

namespace mtplan::runtime {

/// Returns seconds since an arbitrary moment.
using SecondsNow = std::function<double()>;
SecondsNow steadyNow();

/// Returns the flop/s of a rank in square products of the most frequent product
/// type of the plan, while all other ranks do the same. Every rank calls it. On
/// cores it measures products of size 512 for some 10 ms. On a device it uses
/// the smallest size, from 512 doubled up to 8192, that takes a millisecond, or
/// the largest that fits into memory: some 0.2 s.
double productPeak(const Plan &plan, World &world, Backend &backend,
                   const SecondsNow &now = steadyNow());

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_PRODUCT_PEAK_H
