//===- weak_scaling.h - Published and predicted weak scaling ----*- C++ -*-===//
//
// Megatron-LM 2019 (arXiv:1909.08053, figure 5): models grow with the number of
// GPUs, and the speed per GPU is compared with the smallest model's on one GPU.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_VALIDATE_WEAK_SCALING_H
#define MTPLAN_TOOLS_VALIDATE_WEAK_SCALING_H

#include "tools/validate/row_price.h"

namespace mtplan::tools {

struct ScalingPoint {
  RunRow run;
  double published = 0.0; ///< 1: as fast per GPU as one GPU
  double predicted = 0.0;
};

/// Returns tensor ranks alone on 1 to 8 GPUs, then 64 replicas of each, then
/// the largest of these without overlapped gradient reduction.
std::vector<ScalingPoint> weakScaling();

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_VALIDATE_WEAK_SCALING_H
