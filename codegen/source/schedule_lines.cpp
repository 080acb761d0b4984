//===- schedule_lines.cpp - A schedule as loops ---------------------------===//

#include "codegen/source/schedule_lines.h"

#include <algorithm>

namespace mtplan::codegen {

using runtime::ScheduleEntry;

namespace {

/// Whether `later` is `entry`, so many micro-batches on.
bool follows(const ScheduleEntry &entry, const ScheduleEntry &later, int by) {
  return later.program == entry.program && later.first == entry.first &&
         later.step == entry.step && later.count == entry.count &&
         later.microBatch == entry.microBatch + by;
}

/// How often the `length` entries from `at` on come, one time after another.
int timesOf(const std::vector<ScheduleEntry> &schedule, std::size_t at,
            std::size_t length) {
  int times = 1;
  for (;; ++times) {
    const std::size_t next = at + static_cast<std::size_t>(times) * length;
    if (next + length > schedule.size())
      return times;
    for (std::size_t i = 0; i < length; ++i)
      if (!follows(schedule[at + i], schedule[next + i], times))
        return times;
  }
}

/// \param microBatch  as a word of the program
void writeEntry(const ScheduleEntry &entry, const std::string &function,
                const std::string &microBatch, Text &text) {
  auto call = [&](const std::string &layer) {
    text.line(function + "({rank, " + layer + ", " + microBatch + "});");
  };
  if (entry.count == 1)
    return call(std::to_string(entry.first));
  const int last = entry.first + (entry.count - 1) * entry.step;
  const std::string by = entry.step == 1 ? "++layer"
                         : entry.step == -1
                             ? "--layer"
                             : "layer += " + std::to_string(entry.step);
  text.open("for (int layer = " + std::to_string(entry.first) + "; layer " +
            (entry.step > 0 ? "<= " : ">= ") + std::to_string(last) + "; " +
            by + ")");
  call("layer");
  text.leave();
}

} // namespace

void writeSchedule(const std::vector<ScheduleEntry> &schedule,
                   const std::vector<std::string> &functions, Text &text) {
  auto functionOf = [&](const ScheduleEntry &entry) {
    return functions[static_cast<std::size_t>(entry.program)];
  };
  constexpr std::size_t kLongest = 256; // of what comes again
  for (std::size_t at = 0; at < schedule.size();) {
    std::size_t length = 1, covered = 0;
    for (std::size_t l = 1; l <= std::min(kLongest, schedule.size() - at);
         ++l) {
      const auto times = static_cast<std::size_t>(timesOf(schedule, at, l));
      if (times > 1 && times * l > covered) {
        length = l;
        covered = times * l;
      }
    }
    if (covered == 0) {
      writeEntry(schedule[at], functionOf(schedule[at]),
                 std::to_string(schedule[at].microBatch), text);
      ++at;
      continue;
    }
    int least = schedule[at].microBatch;
    for (std::size_t i = at; i < at + length; ++i)
      least = std::min(least, schedule[i].microBatch);
    const auto times = static_cast<int>(covered / length);
    text.open("for (int batch = " + std::to_string(least) + "; batch < " +
              std::to_string(least + times) + "; ++batch) {");
    for (std::size_t i = at; i < at + length; ++i) {
      const int ahead = schedule[i].microBatch - least;
      writeEntry(schedule[i], functionOf(schedule[i]),
                 ahead == 0 ? "batch" : "batch + " + std::to_string(ahead),
                 text);
    }
    text.close();
    at += covered;
  }
}

} // namespace mtplan::codegen
