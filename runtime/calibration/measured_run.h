//===- measured_run.h - A measurement of a machine --------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CALIBRATION_MEASURED_RUN_H
#define MTPLAN_RUNTIME_CALIBRATION_MEASURED_RUN_H

#include <cstdint>
#include <string>

#include "runtime/calibration/stopwatch.h"

namespace mtplan::runtime {

enum class MeasuredAs : std::uint8_t {
  launches,   ///< `count` kernels that do almost nothing, one after another
  pass,       ///< a kernel that moves `bytes`
  product,    ///< `batch` of m x k by k x n
  followed,   ///< `kernel` fused into its producer `after`
  attention,  ///< `batch` heads of m queries over n keys of k features
  collective, ///< of `bytes` over groups of `ranks` that are `stride` apart
  message, ///< of `bytes` to the rank `stride` further, from all ranks at once
};

/// Only the members that `as` names are used.
struct MeasuredRun {
  MeasuredAs as{};
  std::string kernel; ///< "einsum", "layer_norm"; "all_reduce", "send"
  /// The variant, where a setting changes what is computed: the function of an
  /// activation; "dropout" for attention with dropout.
  std::string variant;
  /// For a fused pair: the pass that produces the input of `kernel`, and the
  /// bytes that it moves alone. Empty stands for a product, described by m, n
  /// and k.
  std::string after;
  std::int64_t bytesAfter = 0;
  std::string what; ///< for people: "1024 x 768 by 768 x 3072, forward"
  ElementType type = ElementType::f32;
  std::int64_t count = 0;
  /// For a pass: operands read and results written, each once, except that a
  /// table counts as much as is looked up in it, and a tensor updated in place
  /// counts twice. For a collective: the whole tensor, the gathered one of a
  /// gather. For a fused pair: the tensor between the two.
  std::int64_t bytes = 0;
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  bool causal = false; ///< for attention
  int ranks = 0, stride = 1;
  Timing timing;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CALIBRATION_MEASURED_RUN_H
