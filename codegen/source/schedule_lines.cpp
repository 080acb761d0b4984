//===- schedule_lines.cpp - A schedule as loops ---------------------------===//

#include "codegen/source/schedule_lines.h"

#include <algorithm>

namespace mtplan::codegen {

using runtime::ScheduleEntry;

namespace {

struct Call {
  std::size_t function;
  int number;
};

/// Counts the consecutive repetitions of the `length` calls from `at` on,
/// including these calls. Each repetition calls the same functions as the
/// previous repetition, and each `number` is larger by 1.
int timesOf(const std::vector<Call> &calls, std::size_t at,
            std::size_t length) {
  int times = 1;
  for (;; ++times) {
    const std::size_t next = at + static_cast<std::size_t>(times) * length;
    if (next + length > calls.size())
      return times;
    for (std::size_t i = 0; i < length; ++i)
      if (calls[next + i].function != calls[at + i].function ||
          calls[next + i].number != calls[at + i].number + times)
        return times;
  }
}

/// Writes numbers of micro-batches, or of runs, as expressions of the program.
struct Numbers {
  std::string loop, total; ///< names of the variable and of the upper bound
  int count;               ///< the upper bound
  /// Counts the runs before the first backward; 0 means that the program has no
  /// name for this number.
  int inFlight;

  /// Returns an expression for `number`, which is a bound of a loop. A number
  /// closer to `count` than to 0 is written as `total` minus a number.
  /// \param isWarmUp  whether `number` is the upper bound of the schedule's
  /// first loop
  std::string of(int number, bool isWarmUp) const {
    const int left = count - number;
    if (number == 0)
      return "0";
    if (left == 0)
      return total;
    if (inFlight > 0 && number == inFlight && (isWarmUp || left != inFlight))
      return "buf::inFlight";
    if (inFlight > 0 && left == inFlight)
      return total + " - buf::inFlight";
    return left < number ? total + " - " + std::to_string(left)
                         : std::to_string(number);
  }

  /// Returns the expression for a number that exceeds the loop variable by
  /// `ahead`: "batch + 1".
  std::string ahead(int ahead) const {
    if (ahead == 0)
      return loop;
    return loop + " + " +
           (ahead == inFlight ? "buf::inFlight" : std::to_string(ahead));
  }
};

} // namespace

void writeEntry(const StageNames &names, const ScheduleEntry &entry,
                const std::vector<std::string> &functions,
                const std::string &microBatch, Text &text) {
  const auto call = [&](const std::string &layer) {
    const std::string run = "({rank, " + layer + ", " + microBatch + "});";
    for (const std::string &function : functions)
      text.line(function + run);
  };
  if (entry.count == 1)
    return call(entry.first <= 1 ? std::to_string(entry.first)
                                 : names.layers(entry.first));
  const int last = entry.first + (entry.count - 1) * entry.step;
  const std::string layers = names.layers(entry.count),
                    end = functions.size() > 1 ? ") {" : ")";
  if (entry.step == 1 && entry.first == 0)
    text.open("for (int layer = 0; layer < " + layers + "; ++layer" + end);
  else if (entry.step == -1 && last == 0)
    text.open("for (int layer = " + layers + " - 1; layer >= 0; --layer" + end);
  else
    text.open("for (int layer = " + std::to_string(entry.first) + "; layer " +
              (entry.step > 0 ? "<= " : ">= ") + std::to_string(last) +
              "; layer += " + std::to_string(entry.step) + end);
  call("layer");
  if (functions.size() > 1)
    text.close();
  else
    text.leave();
}

void writeRuns(int microBatches, const PassSchedule &schedule,
               const std::vector<std::string> &functions, Text &text) {
  const bool hasGroups = schedule.groupSize > 0;
  std::vector<Call> calls;
  int counts[2] = {0, 0}; // forward, backward
  for (const PassRun &run : schedule.runs) {
    const std::size_t direction = schedule.passes[run.pass].isBackward ? 1 : 0;
    if (hasGroups)
      calls.push_back({direction, counts[direction]++});
    else
      calls.push_back({run.pass, run.microBatch});
  }
  const int before = runsBeforeBackward(schedule);
  const auto parts = static_cast<int>(schedule.parts);
  const Numbers numbers =
      hasGroups ? Numbers{"run", "microBatches * " + std::to_string(parts),
                          microBatches * parts, before}
                : Numbers{"batch", "microBatches", microBatches,
                          before > 1 ? before : 0};
  constexpr std::size_t kLongest = 256; // maximum calls per repetition
  for (std::size_t at = 0; at < calls.size();) {
    std::size_t length = 1, covered = 0;
    for (std::size_t l = 1; l <= std::min(kLongest, calls.size() - at); ++l) {
      const auto times = static_cast<std::size_t>(timesOf(calls, at, l));
      if (times > 1 && times * l > covered) {
        length = l;
        covered = times * l;
      }
    }
    const auto call = [&](std::size_t i, const std::string &number) {
      text.line(functions[calls[i].function] + "(rank, " + number + ");");
    };
    if (covered == 0) {
      call(at, std::to_string(calls[at].number));
      ++at;
      continue;
    }
    int least = calls[at].number;
    for (std::size_t i = at; i < at + length; ++i)
      least = std::min(least, calls[i].number);
    const auto times = static_cast<int>(covered / length);
    text.open("for (int " + numbers.loop + " = " + numbers.of(least, false) +
              "; " + numbers.loop + " < " + numbers.of(least + times, at == 0) +
              "; ++" + numbers.loop + (length > 1 ? ") {" : ")"));
    for (std::size_t i = at; i < at + length; ++i)
      call(i, numbers.ahead(calls[i].number - least));
    if (length > 1)
      text.close();
    else
      text.leave();
    at += covered;
  }
}

std::string functionNameOf(const runtime::Program &program,
                           const StageNames &names) {
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
    return isRecomputation(program)
               ? program.name.substr(0, program.name.rfind('.'))
               : program.name;
  const bool isGradient = isBackward(program);
  return std::string(first->sends ? "send " : "receive ") +
         (isGradient ? "gradient" : "activation") +
         (first->sends ? " to " : " from ") +
         names.peer(first->sends, first->stage, isGradient);
}

std::string purposeOfMessages(const runtime::Program &program,
                              const StageNames &names) {
  const auto &first =
      std::get<runtime::Transfer>(program.instructions.front().what);
  const bool isGradient = isBackward(program);
  return std::string(first.sends ? "Sends the " : "Receives the ") +
         (isGradient ? "gradient" : "activation") +
         " of micro-batch now.microBatch " + (first.sends ? "to" : "from") +
         " " + names.peerStage(first.sends, first.stage, isGradient) + ".";
}

std::string purposeOfReduction(const runtime::Program &program) {
  bool reports = false;
  int collectives = 0;
  for (const runtime::Instruction &one : program.instructions) {
    collectives +=
        std::holds_alternative<runtime::Collective>(one.what) ? 1 : 0;
    reports |= std::holds_alternative<runtime::Report>(one.what);
  }
  const bool sums = collectives > 0;
  if (reports)
    return collectives > 1 ? "sums gradients and the loss over ranks, and "
                             "reports the loss"
           : sums          ? "sums the loss over ranks and reports it"
                           : "reports the loss";
  return sums ? "sums gradients over ranks"
              : "adds up the gradients of a tied weight";
}

} // namespace mtplan::codegen
