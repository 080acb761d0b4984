//===- schedule_lines.cpp - A schedule as loops ---------------------------===//

#include "codegen/source/schedule_lines.h"

#include <algorithm>

namespace mtplan::codegen {

using runtime::ScheduleEntry;

namespace {

/// Whether `later` is `entry`, `by` micro-batches on.
bool follows(const ScheduleEntry &entry, const ScheduleEntry &later, int by) {
  return later.program == entry.program && later.first == entry.first &&
         later.step == entry.step && later.count == entry.count &&
         later.microBatch == entry.microBatch + by;
}

/// Returns how often in a row the `length` entries from `at` on come.
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

/// Returns the end of a loop over micro-batches, counted from the last one
/// where that is near.
std::string batchesText(const runtime::Plan &plan, int end) {
  const int left = plan.microBatches - end;
  if (left == 0)
    return "microBatches";
  return left < end ? "microBatches - " + std::to_string(left)
                    : std::to_string(end);
}

/// Writes the calls of one entry.
/// \param microBatch  the program's expression for it
void writeEntry(const runtime::Plan &plan, const ScheduleEntry &entry,
                const std::string &function, const std::string &microBatch,
                Text &text) {
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
  const std::string layers = layersText(plan, entry.count);
  if (entry.step == 1 && entry.first == 0)
    text.open("for (int layer = 0; layer < " + layers + "; ++layer)");
  else if (entry.step == -1 && last == 0)
    text.open("for (int layer = " + layers + " - 1; layer >= 0; --layer)");
  else
    text.open("for (int layer = " + std::to_string(entry.first) + "; layer " +
              (entry.step > 0 ? "<= " : ">= ") + std::to_string(last) + "; " +
              by + ")");
  call("layer");
  text.leave();
}

} // namespace

std::string layersText(const runtime::Plan &plan, int layers) {
  if (layers == plan.layers)
    return "L";
  const auto pp = std::ranges::find(plan.mesh, "pp", &runtime::Axis::name);
  return pp != plan.mesh.end() && layers * pp->size == plan.layers
             ? "L / pp"
             : std::to_string(layers);
}

void writeSchedule(const runtime::Plan &plan,
                   const std::vector<ScheduleEntry> &schedule,
                   const std::vector<std::string> &functions, Text &text) {
  auto functionOf = [&](const ScheduleEntry &entry) {
    return functions[static_cast<std::size_t>(entry.program)];
  };
  constexpr std::size_t kLongest = 256; // entries of one repetition
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
      writeEntry(plan, schedule[at], functionOf(schedule[at]),
                 std::to_string(schedule[at].microBatch), text);
      ++at;
      continue;
    }
    int least = schedule[at].microBatch;
    for (std::size_t i = at; i < at + length; ++i)
      least = std::min(least, schedule[i].microBatch);
    const auto times = static_cast<int>(covered / length);
    text.open("for (int batch = " + std::to_string(least) + "; batch < " +
              batchesText(plan, least + times) + "; ++batch) {");
    for (std::size_t i = at; i < at + length; ++i) {
      const int ahead = schedule[i].microBatch - least;
      writeEntry(plan, schedule[i], functionOf(schedule[i]),
                 ahead == 0 ? "batch" : "batch + " + std::to_string(ahead),
                 text);
    }
    text.close();
    at += covered;
  }
}

} // namespace mtplan::codegen
