//===- step_record.h - The report of one step -------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_METRICS_STEP_RECORD_H
#define MTPLAN_RUNTIME_METRICS_STEP_RECORD_H

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mtplan::runtime {

struct StepRecord {
  std::int64_t step = 0;     ///< counted from 1
  std::int64_t steps = 0;    ///< the run's last step
  double loss = 0.0;         ///< nats per token
  double gradientNorm = 0.0; ///< before clipping
  double learningRate = 0.0;
  std::optional<double> lossScale; ///< scale of this step; none without scaling
  bool skipped = false;            ///< an overflow prevented the update
  std::int64_t tokens = 0;         ///< tokens of the step, over all ranks
  double seconds = 0.0;
  double modelFlops = 0.0; ///< flops of the step, over all ranks; 0: unknown
  int ranks = 1;
  double peakFlops = 0.0;       ///< peak of one rank, flop/s; 0: unknown
  std::int64_t memoryBytes = 0; ///< peak of the process; 0: unknown
  std::optional<double> validationLoss;

  double tokensPerSecond() const {
    return seconds > 0.0 ? static_cast<double>(tokens) / seconds : 0.0;
  }
  double flopsPerRank() const {
    return seconds > 0.0 ? modelFlops / seconds / ranks : 0.0;
  }
  /// Returns flopsPerRank() relative to the peak; 0 if the peak is unknown.
  double shareOfPeak() const {
    return peakFlops > 0.0 ? flopsPerRank() / peakFlops : 0.0;
  }
  /// Returns the seconds that the remaining steps take at this step's pace.
  double secondsLeft() const {
    return static_cast<double>(steps - step) * seconds;
  }
};

inline double perplexityOf(double loss) { return std::exp(loss); }

//===----------------------------------------------------------------------===//
// A line for the screen
//
//   step  20/200  loss 3.4121  norm 0.912  lr 3.00e-04  41.2k tokens/s
//   1.02 TFLOP/s (34 %)  812 MiB  0:45 left
//
// The text above is one line. Unknown values are left out. Programs should read
// the JSON lines instead, because the names of their members are stable.
//===----------------------------------------------------------------------===//

std::string progressLine(const StepRecord &record);

//===----------------------------------------------------------------------===//
// A JSON line
//
// Every step is one object on one line. Other programs rely on the names of the
// members. A new member does not change `version`; any other change increments
// `version`.
//
//   step loss gradient_norm learning_rate loss_scale? skipped tokens seconds
//   tokens_per_second flops_per_rank? share_of_peak? memory_bytes?
//   validation_loss? perplexity? version
//
// A member with `?` is left out if its value is unknown. Numbers are the
// shortest text that reads back as the same double. Infinity and NaN, which
// JSON lacks, become null.
//===----------------------------------------------------------------------===//

inline constexpr int kStepLinesVersion = 1;

std::string jsonLine(const StepRecord &record);

/// Truncates a log before the first line of a step after `step`, because a run
/// that resumes after `step` repeats the later steps. Also removes a partial
/// last line. A missing file is not created. Returns the number of removed
/// lines.
/// \throws std::runtime_error if the log cannot be read or truncated
std::int64_t cutStepsAfter(const std::string &path, std::int64_t step);

//===----------------------------------------------------------------------===//
// TensorBoard
//
// A file consists of TFRecord frames around Event messages, which are encoded
// without protobuf:
//
//   u64 length, u32 masked CRC-32C of the length, data,
//   u32 masked CRC-32C of the data
//
//   Event    1 double wall_time, 2 int64 step, 3 string file_version,
//            5 Summary
//   Summary  1 Value: 1 string tag, 2 float simple_value
//===----------------------------------------------------------------------===//

/// Returns the CRC-32 with Castagnoli's polynomial, reflected.
std::uint32_t crc32c(std::string_view bytes);

/// Returns the first record of a file.
/// \param wallTime  seconds since 1970, here and below
std::string versionRecord(double wallTime);

std::string scalarRecord(double wallTime, std::int64_t step,
                         std::string_view tag, float value);

/// Returns a record for each known value of a step, except its tokens and
/// seconds. The tags are the member names of the JSON line.
std::string stepRecords(double wallTime, const StepRecord &record);

/// Returns "events.out.tfevents.<seconds>.<host>.<process>".
std::string eventFileName(std::int64_t seconds, std::string_view host,
                          std::int64_t process);

/// Holds the resident bytes of this process; 0 if the system does not report
/// them.
struct ProcessMemory {
  std::int64_t now = 0;
  std::int64_t peak = 0; ///< since the process began
};

ProcessMemory processMemory();

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_METRICS_STEP_RECORD_H
