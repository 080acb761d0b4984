//===- product_peak.h - What products reach at best -------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_PRODUCT_PEAK_H
#define MTPLAN_RUNTIME_EXECUTOR_PRODUCT_PEAK_H

#include <functional>

#include "runtime/backend/kernel.h"
#include "runtime/communicator/communicator.h"

namespace mtplan::runtime {

/// Seconds since some moment.
using SecondsNow = std::function<double()>;
SecondsNow steadyNow();

/// Flop/s of a rank in square products of the type of most of the plan's
/// products, while all other ranks do the same. Every rank calls it. Cores take
/// a product of 512 and some 10 ms. What is queued (a device) takes the
/// smallest, from 512 on doubled up to 8192, whose run is a millisecond, or the
/// largest that there is room for if that is less: some 0.2 s.
double productPeak(const Plan &plan, World &world, Backend &backend,
                   const SecondsNow &now = steadyNow());

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_PRODUCT_PEAK_H
