//===- weak_scaling.h - A published curve beside ours -----------*- C++ -*-===//
//
// Megatron-LM 2019 (arXiv:1909.08053, figure 5): models that grow with the
// number of GPUs, their speed per GPU over that of the smallest on one.
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

/// Tensor ranks alone, 1 to 8 GPUs, then 64 replicas of each, then the largest
/// of these with its gradients summed after backward.
std::vector<ScalingPoint> weakScaling();

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_VALIDATE_WEAK_SCALING_H
