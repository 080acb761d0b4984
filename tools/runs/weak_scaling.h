//===- weak_scaling.h - Weak scaling in Megatron-LM 2019 --------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUNS_WEAK_SCALING_H
#define MTPLAN_TOOLS_RUNS_WEAK_SCALING_H

#include <vector>

#include "tools/runs/run_row.h"

namespace mtplan::tools {

/// Holds a point of weak scaling in Megatron-LM 2019 (arXiv:1909.08053, figure
/// 5). Models grow with the number of GPUs. The speeds are per GPU, relative to
/// the smallest model on one GPU.
struct ScalingPoint {
  RunRow run;
  double published = 0.0; ///< relative speed per GPU
  double predicted = 0.0;
};

/// Returns nine points: tp 1, 2, 4 and 8 with one replica, the same with 64
/// replicas, and the largest model on 64 replicas without overlapped gradient
/// reduction.
std::vector<ScalingPoint> weakScaling();

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUNS_WEAK_SCALING_H
