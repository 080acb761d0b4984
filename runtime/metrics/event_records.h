//===- event_records.h - What TensorBoard reads -----------------*- C++ -*-===//
//
// TFRecord frames around Event messages, written by hand:
//
//   u64 length, u32 masked CRC-32C of it, data, u32 masked CRC-32C of the data
//
//   Event    1 double wall_time, 2 int64 step, 3 string file_version,
//            5 Summary
//   Summary  1 Value: 1 string tag, 2 float simple_value
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_METRICS_EVENT_RECORDS_H
#define MTPLAN_RUNTIME_METRICS_EVENT_RECORDS_H

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/metrics/step_record.h"

namespace mtplan::runtime {

/// Castagnoli's polynomial, reflected.
std::uint32_t crc32c(std::string_view bytes);

/// The first record of a file.
/// \param wallTime  seconds since 1970
std::string versionRecord(double wallTime);

std::string scalarRecord(double wallTime, std::int64_t step,
                         std::string_view tag, float value);

/// All that is known of a step, a record each; tags as in step_lines.h.
std::string stepRecords(double wallTime, const StepRecord &record);

/// "events.out.tfevents.<seconds>.<host>.<process>"
std::string eventFileName(std::int64_t seconds, std::string_view host,
                          std::int64_t process);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_METRICS_EVENT_RECORDS_H
