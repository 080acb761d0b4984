//===- product_peak.h - What products reach at best -------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_PRODUCT_PEAK_H
#define MTPLAN_RUNTIME_EXECUTOR_PRODUCT_PEAK_H

#include "runtime/backend/kernel.h"
#include "runtime/communicator/communicator.h"

namespace mtplan::runtime {

/// Flop/s of a rank in square products of the type of most of the plan's
/// products, while all other ranks do the same. Every rank calls it; it takes
/// some 10 ms.
double productPeak(const Plan &plan, World &world, Backend &backend);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_PRODUCT_PEAK_H
