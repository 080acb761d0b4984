//===- schedule_lines.cpp - A schedule as loops ---------------------------===//

#include "codegen/source/schedule_lines.h"

#include <algorithm>
#include <set>

namespace mtplan::codegen {

using runtime::ScheduleEntry;

namespace {

/// Returns whether `later` equals `entry` except that its micro-batch is larger
/// by `by`.
bool follows(const ScheduleEntry &entry, const ScheduleEntry &later, int by) {
  return later.program == entry.program && later.first == entry.first &&
         later.step == entry.step && later.count == entry.count &&
         later.microBatch == entry.microBatch + by;
}

/// Returns how many times in a row the `length` entries from `at` on occur, the
/// first time included. Each time is for the next micro-batch.
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

/// Formats numbers of micro-batches as expressions of the program.
struct BatchNumbers {
  const runtime::Plan &plan;
  int inFlight = 0;

  /// Returns the lower or the upper bound of a loop. A bound that is closer to
  /// the last micro-batch than to the first is "microBatches" minus a number.
  /// \param isWarmUp  whether `number` is the upper bound of a loop with which
  ///                  the schedule begins
  std::string of(int number, bool isWarmUp) const {
    const int left = plan.microBatches - number;
    if (number == 0)
      return "0";
    if (left == 0)
      return "microBatches";
    if (inFlight > 0 && number == inFlight && (isWarmUp || left != inFlight))
      return "inFlight";
    if (inFlight > 0 && left == inFlight)
      return "microBatches - inFlight";
    return left < number ? "microBatches - " + std::to_string(left)
                         : std::to_string(number);
  }

  /// Returns the micro-batch of a call that is `number` micro-batches ahead of
  /// its loop: "batch + 1".
  std::string ahead(int number) const {
    if (number == 0)
      return "batch";
    return "batch + " +
           (number == inFlight ? "inFlight" : std::to_string(number));
  }
};

/// Writes the calls of one entry.
/// \param microBatch  the expression for the entry's micro-batch
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

std::string functionNameOf(const runtime::Program &program) {
  const auto *first =
      program.instructions.empty()
          ? nullptr
          : std::get_if<runtime::Transfer>(&program.instructions.front().what);
  if (!first || !std::ranges::all_of(
                    program.instructions, [&](const runtime::Instruction &one) {
                      const auto *transfer =
                          std::get_if<runtime::Transfer>(&one.what);
                      return transfer && transfer->sends == first->sends &&
                             transfer->stage == first->stage;
                    }))
    return program.name;
  return std::string(first->sends ? "send " : "receive ") +
         (program.name.ends_with(".backward") ? "gradient" : "activation") +
         (first->sends ? " to " : " from ") + "stage" +
         std::to_string(first->stage);
}

std::string purposeOfMessages(const runtime::Program &program) {
  const auto &first =
      std::get<runtime::Transfer>(program.instructions.front().what);
  return std::string(first.sends ? "Sends the " : "Receives the ") +
         (program.name.ends_with(".backward") ? "gradient" : "activation") +
         " of micro-batch now.microBatch " + (first.sends ? "to" : "from") +
         " stage " + std::to_string(first.stage) + ".";
}

std::string purposeOfReduction(const runtime::Program &program) {
  bool sums = false, reports = false;
  for (const runtime::Instruction &one : program.instructions) {
    sums |= std::holds_alternative<runtime::Collective>(one.what);
    reports |= std::holds_alternative<runtime::Report>(one.what);
  }
  if (reports)
    return sums ? "sums the loss over ranks and reports it"
                : "reports the loss";
  return sums ? "sums gradients over ranks"
              : "adds up the gradients of a tied weight";
}

int microBatchesInFlight(const runtime::Stage &stage) {
  std::set<int> forward;
  for (const ScheduleEntry &entry : stage.schedule) {
    const std::string &name =
        stage.programs[static_cast<std::size_t>(entry.program)].name;
    if (name.ends_with(".backward"))
      break;
    forward.insert(entry.microBatch);
  }
  return forward.size() > 1 ? static_cast<int>(forward.size()) : 0;
}

std::string layersText(const runtime::Plan &plan, int layers) {
  if (layers == plan.layers)
    return "L";
  const auto pp = std::ranges::find(plan.mesh, "pp", &runtime::Axis::name);
  const bool isShareOfEach =
      std::ranges::all_of(plan.stages, [&](const runtime::Stage &stage) {
        return std::ranges::any_of(
            stage.schedule,
            [&](const ScheduleEntry &entry) { return entry.count == layers; });
      });
  return pp != plan.mesh.end() && layers * pp->size == plan.layers &&
                 isShareOfEach
             ? "L / pp"
             : std::to_string(layers);
}

void writeSchedule(const runtime::Plan &plan,
                   const std::vector<ScheduleEntry> &schedule,
                   const std::vector<std::string> &functions, Text &text,
                   int inFlight) {
  const BatchNumbers numbers{plan, inFlight};
  auto functionOf = [&](const ScheduleEntry &entry) {
    return functions[static_cast<std::size_t>(entry.program)];
  };
  constexpr std::size_t kLongest = 256; // maximum entries of a repetition
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
    text.open("for (int batch = " + numbers.of(least, false) + "; batch < " +
              numbers.of(least + times, at == 0) + "; ++batch) {");
    for (std::size_t i = at; i < at + length; ++i) {
      const int ahead = schedule[i].microBatch - least;
      writeEntry(plan, schedule[i], functionOf(schedule[i]),
                 numbers.ahead(ahead), text);
    }
    text.close();
    at += covered;
  }
}

} // namespace mtplan::codegen
