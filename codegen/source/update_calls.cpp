//===- update_calls.cpp - Calls of reductions and updates -----------------===//

#include "codegen/source/update_calls.h"

#include "codegen/source/schedule_lines.h"
#include "runtime/plan/plan_queries.h"

namespace mtplan::codegen {

using runtime::indexed, runtime::ScheduleEntry;

namespace {

/// Returns whether one loop can run the layers of two entries.
bool canUnite(const ScheduleEntry &one, const ScheduleEntry &other) {
  const auto isWhole = [](const ScheduleEntry &entry) {
    return entry.step == 1 ? entry.first == 0 : entry.first == entry.count - 1;
  };
  return isWhole(one) && isWhole(other) &&
         (one.step == other.step || one.count == 1 || other.count == 1);
}

/// Returns how many times in succession the functions of the `length` entries
/// from `at` on occur. Functions that differ only in tensors and sizes count as
/// equal.
std::size_t timesOf(const std::vector<ScheduleEntry> &entries,
                    const std::vector<StageFunction> &functions, std::size_t at,
                    std::size_t length) {
  const auto bodyOf = [&](std::size_t e) -> const Text & {
    return functions[indexed(entries[e].program)].body;
  };
  for (std::size_t times = 1;; ++times)
    for (std::size_t k = 0; k < length; ++k) {
      const std::size_t e = at + k, other = e + times * length;
      LoopTable scratch;
      if (at + (times + 1) * length > entries.size() ||
          !canUnite(entries[e], entries[other]) ||
          !scratch.unite({bodyOf(e).items(), bodyOf(other).items()}))
        return times;
    }
}

UpdateCall withLoops(const ScheduleEntry &entry, TableLoops &loops,
                     std::vector<StageFunction> &functions) {
  StageFunction &function = functions[indexed(entry.program)];
  function.body =
      loops.withLoops(function.body, function.name, TableLoops::Calls::all);
  return {indexed(entry.program), entry};
}

/// Replaces the functions of `times` entries by one function. The numbers of
/// the entries are `first`, `first` + `step` and so on.
UpdateCall unite(const std::vector<ScheduleEntry> &entries,
                 const StageNames &names, TableLoops &loops,
                 std::vector<StageFunction> &functions, std::size_t first,
                 std::size_t step, std::size_t times) {
  std::vector<Text> bodies;
  std::vector<std::string> layers;
  ScheduleEntry longest = entries[first];
  for (std::size_t t = 0; t < times; ++t) {
    const ScheduleEntry &entry = entries[first + t * step];
    StageFunction &function = functions[indexed(entry.program)];
    bodies.push_back(function.body);
    layers.push_back(names.layers(entry.count));
    function.isUnused = t > 0;
    if (entry.count > longest.count)
      longest = entry;
  }
  const std::size_t index = indexed(entries[first].program);
  StageFunction &function = functions[index];
  const UnitedFunction united = loops.united(bodies, layers, function.name);
  function.body = united.body;
  function.arguments += ", const auto &row";
  function.comment.comment("`row` has the tensors of one call.");
  return {index, longest, united.table, united.layers};
}

} // namespace

std::vector<UpdateCalls> updateCalls(const std::vector<ScheduleEntry> &entries,
                                     const StageNames &names, TableLoops &loops,
                                     std::vector<StageFunction> &functions) {
  constexpr std::size_t kLongest = 4; // maximum functions per repetition
  std::vector<UpdateCalls> calls;
  for (std::size_t e = 0; e < entries.size();) {
    std::size_t length = 1, times = 1;
    for (std::size_t l = 1; l <= kLongest; ++l)
      if (const std::size_t t = timesOf(entries, functions, e, l);
          (t - 1) * l > (times - 1) * length) {
        length = l;
        times = t;
      }
    UpdateCalls &one = calls.emplace_back();
    one.times = static_cast<int>(times);
    for (std::size_t k = 0; k < length; ++k)
      one.functions.push_back(
          times > 1
              ? unite(entries, names, loops, functions, e + k, length, times)
              : withLoops(entries[e + k], loops, functions));
    e += length * times;
  }
  return calls;
}

void writeUpdateCalls(const StageNames &names, const UpdateCalls &calls,
                      const std::vector<std::string> &callees, Text &to) {
  const auto write = [&](std::size_t k, const std::string &row) {
    const UpdateCall &one = calls.functions[k];
    const bool isOne = one.layers == "1";
    const std::string layers = one.layers.starts_with("row.")
                                   ? row + one.layers.substr(3)
                                   : one.layers;
    if (!isOne && one.entry.step == 1)
      to.open("for (int layer = 0; layer < " + layers + "; ++layer)");
    else if (!isOne)
      to.open("for (int layer = " + layers + " - 1; layer >= 0; --layer)");
    to.line(callees[k] + "({rank, " + (isOne ? "0" : "layer") + ", 0}, " + row +
            ");");
    if (!isOne)
      to.leave();
  };
  if (calls.times == 1)
    return writeEntry(names, calls.functions.front().entry, callees, "0", to);
  if (calls.functions.size() == 1) {
    to.open("for (const auto &row : buf::" + calls.functions.front().table +
            ")");
    write(0, "row");
    return to.leave();
  }
  to.open("for (int i = 0; i < " + std::to_string(calls.times) + "; ++i) {");
  for (std::size_t k = 0; k < calls.functions.size(); ++k) {
    const std::string row = "row" + (k == 0 ? "" : std::to_string(k + 1));
    to.line("const auto &" + row + " = buf::" + calls.functions[k].table +
            "[i];");
    write(k, row);
  }
  to.close();
}

} // namespace mtplan::codegen
