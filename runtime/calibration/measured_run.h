//===- measured_run.h - What a machine was seen to take ---------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CALIBRATION_MEASURED_RUN_H
#define MTPLAN_RUNTIME_CALIBRATION_MEASURED_RUN_H

#include <cstdint>
#include <string>

#include "runtime/calibration/stopwatch.h"

namespace mtplan::runtime {

enum class MeasuredAs : std::uint8_t {
  launches,   ///< `count` kernels of next to nothing, one after another
  pass,       ///< a kernel that `bytes` pass through
  product,    ///< `batch` of m x k by k x n
  followed,   ///< `kernel` at once with what it is `after`
  attention,  ///< `batch` heads of m queries over n keys of k features
  collective, ///< of `bytes` over groups of `ranks` that are `stride` apart
  message,    ///< of `bytes` to the rank `stride` further, all at once
};

/// Only the members that `as` speaks of matter.
struct MeasuredRun {
  MeasuredAs as{};
  std::string kernel; ///< "einsum", "layer_norm"; "all_reduce", "send"
  /// Which of them, where a setting changes what is computed: the function of
  /// an activation; "dropout" of attention that drops.
  std::string variant;
  /// Of two at once: the pass that makes what `kernel` takes, and the bytes
  /// that it moves alone; empty: a product, which m, n and k tell.
  std::string after;
  std::int64_t bytesAfter = 0;
  std::string what; ///< for people: "1024 x 768 by 768 x 3072, forward"
  ElementType type = ElementType::f32;
  std::int64_t count = 0;
  /// Of a pass: operands read and results written, each once, but what is
  /// looked up in a table, which counts as what is found, and what is updated
  /// in place, which counts twice. Of a collective: the whole tensor, of a
  /// gather the gathered one. Of two at once: what lies between them.
  std::int64_t bytes = 0;
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  bool causal = false; ///< of attention
  int ranks = 0, stride = 1;
  Timing timing;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CALIBRATION_MEASURED_RUN_H
