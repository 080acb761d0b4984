//===- step_record.h - What is reported of one step -------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_METRICS_STEP_RECORD_H
#define MTPLAN_RUNTIME_METRICS_STEP_RECORD_H

#include <cmath>
#include <cstdint>
#include <optional>

namespace mtplan::runtime {

struct StepRecord {
  std::int64_t step = 0;     ///< from 1
  std::int64_t steps = 0;    ///< of the whole run
  double loss = 0.0;         ///< nats a token
  double gradientNorm = 0.0; ///< before the clip
  double learningRate = 0.0;
  std::optional<double> lossScale; ///< of this step; none without scaling
  bool skipped = false;            ///< for an overflow
  std::int64_t tokens = 0;         ///< of the step, all ranks
  double seconds = 0.0;            ///< that it took
  double modelFlops = 0.0;         ///< of the step, all ranks; 0: unknown
  int ranks = 1;
  double peakFlops = 0.0;       ///< of one rank, flop/s; 0: unknown
  std::int64_t memoryBytes = 0; ///< of a process, the most so far; 0: unknown
  std::optional<double> validationLoss;

  /// All ranks together.
  double tokensPerSecond() const {
    return seconds > 0.0 ? static_cast<double>(tokens) / seconds : 0.0;
  }
  /// flop/s of one rank.
  double flopsPerRank() const {
    return seconds > 0.0 ? modelFlops / seconds / ranks : 0.0;
  }
  /// 0 if the peak is unknown.
  double shareOfPeak() const {
    return peakFlops > 0.0 ? flopsPerRank() / peakFlops : 0.0;
  }
  /// Until the last step, if all take as long as this one.
  double secondsLeft() const {
    return static_cast<double>(steps - step) * seconds;
  }
};

/// Of a loss in nats.
inline double perplexityOf(double loss) { return std::exp(loss); }

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_METRICS_STEP_RECORD_H
