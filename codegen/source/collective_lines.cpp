//===- collective_lines.cpp - Collectives as lines of a program -----------===//

#include "codegen/source/collective_lines.h"

#include <algorithm>
#include <string_view>

#include "runtime/plan/plan_queries.h"
#include "runtime/plan/plan_words.h"

namespace mtplan::codegen {

using namespace runtime;

namespace {

constexpr std::size_t kLeastRows = 3; // minimum rows of a table

std::string dimensionText(int which) {
  return "dimension " + std::to_string(which);
}

} // namespace

/// Writes a table of the program, an array of structs that a loop reads.
class Table {
public:
  /// Returns the expression by which the loop reads one value per row. If all
  /// rows have the same value, the result is that value, without a column.
  std::string column(const std::string &type, const std::string &name,
                     std::vector<std::string> values) {
    if (std::ranges::all_of(values, [&](const std::string &value) {
          return value == values.front();
        }))
      return values.front();
    for (const Column &one : columns)
      if (one.values == values)
        return "row." + one.name;
    std::string free = name;
    for (int i = 2;
         std::ranges::find(columns, free, &Column::name) != columns.end(); ++i)
      free = name + std::to_string(i);
    columns.push_back({type, free, std::move(values)});
    return "row." + free;
  }

  /// Writes the table as an array called `array`.
  void write(const std::string &array, std::size_t rows, Text &text) const {
    std::string members, last;
    for (const Column &one : columns) {
      members +=
          one.type == last ? ", " : (last.empty() ? "" : "; ") + one.type + " ";
      members += one.name;
      last = one.type;
    }
    text.open("static constexpr struct {");
    text.line(members + ";");
    text.close("} " + array + "[] = {");
    for (std::size_t r = 0; r < rows; ++r) {
      std::vector<std::string> values;
      for (const Column &one : columns)
        values.push_back(one.values[r]);
      text.call("    {", values, "},");
    }
    text.line("};");
  }

private:
  struct Column {
    std::string type, name;
    std::vector<std::string> values; ///< by row
  };
  std::vector<Column> columns;
};

/// Describes the function and the arguments of a collective's call.
struct CollectiveLines::Call {
  std::string function, group, operation;
  const Tensor *from = nullptr, *to = nullptr;
  std::vector<std::string> sizes;
};

CollectiveLines::CollectiveLines(const Plan &thePlan, const Program &theProgram,
                                 const StageNames &theNames,
                                 const SharedNames &theShared, Text &theText)
    : plan(thePlan), program(theProgram), names(theNames), shared(theShared),
      text(theText), lastWaiters(program.instructions.size(), -1) {
  for (std::size_t i = 0; i < program.instructions.size(); ++i)
    for (const int early : program.instructions[i].waits)
      lastWaiters[indexed(early)] = static_cast<int>(i);
}

//===----------------------------------------------------------------------===//
// One collective
//===----------------------------------------------------------------------===//

/// Returns the number of ranks in each communicator of a group: the constant of
/// a mesh axis if the group is the group of that axis, else digits.
std::string CollectiveLines::ranksText(const Group &group) const {
  const std::size_t ranks = group.communicators.front().size();
  for (std::size_t a = 0; a < plan.mesh.size(); ++a)
    if (plan.mesh[a].name == group.name && indexed(plan.mesh[a].size) == ranks)
      return shared.dimensions.axis(static_cast<int>(a));
  return std::to_string(ranks);
}

CollectiveLines::Call CollectiveLines::callOf(std::size_t i) const {
  const Instruction &instruction = program.instructions[i];
  const auto &what = std::get<Collective>(instruction.what);
  const Tensor &in = instruction.inputs[0], &out = instruction.outputs[0];
  const std::string ranks = ranksText(plan.groups[indexed(what.group)]);
  Call call;
  call.group = shared.groups[indexed(what.group)];
  call.from = &in;
  call.to = &out;
  const std::string operation = what.reduction == Reduction::sum   ? "ncclSum"
                                : what.reduction == Reduction::max ? "ncclMax"
                                                                   : "ncclAvg";
  auto addAround = [&](const Tensor &tensor, int dimension,
                       const std::string &parts) {
    call.sizes.push_back(names.elements(tensor, 0, indexed(dimension)));
    call.sizes.push_back(names.elements(tensor, indexed(dimension)) + parts);
  };
  switch (what.kind) {
  case CollectiveKind::allReduce:
    call.function = "allReduce";
    call.sizes.push_back(names.elements(in));
    call.operation = operation;
    break;
  case CollectiveKind::allGather:
    call.function = "allGather";
    addAround(in, what.gathered, "");
    break;
  case CollectiveKind::reduceScatter:
    call.function = "reduceScatter";
    addAround(out, what.scattered, "");
    call.operation = operation;
    break;
  case CollectiveKind::allToAll:
    call.function = "allToAll";
    addAround(in, what.scattered, " / " + ranks);
    addAround(out, what.gathered, " / " + ranks);
    break;
  }
  return call;
}

std::string CollectiveLines::runOf(std::size_t i) const {
  const int stream = program.instructions[i].stream;
  return stream == 0 ? "now"
                     : "now.on(" + shared.streams[indexed(stream)] + ")";
}

void CollectiveLines::write(std::size_t i) const {
  const Call call = callOf(i);
  std::vector<std::string> arguments = {
      runOf(i), call.group, names.tensor(*call.from), names.tensor(*call.to)};
  arguments.insert(arguments.end(), call.sizes.begin(), call.sizes.end());
  if (!call.operation.empty())
    arguments.push_back(call.operation);
  text.call(call.function, arguments);
}

//===----------------------------------------------------------------------===//
// Many collectives
//===----------------------------------------------------------------------===//

bool CollectiveLines::isWithin(std::size_t i, std::size_t row,
                               std::size_t length) const {
  const Instruction &one = program.instructions[i];
  return std::holds_alternative<Collective>(one.what) &&
         one.overlapped == program.instructions[row].overlapped &&
         lastWaiters[i] < static_cast<int>(row + length) &&
         std::ranges::all_of(one.waits,
                             [&](int early) { return indexed(early) >= row; });
}

/// Returns whether the instructions from i and from `other` on have the same
/// calls except for tensors and sizes, so that they can be rows of one table.
bool CollectiveLines::areAlike(std::size_t i, std::size_t other,
                               std::size_t length) const {
  for (std::size_t k = 0; k < length; ++k) {
    const Instruction &a = program.instructions[i + k],
                      &b = program.instructions[other + k];
    const Call one = callOf(i + k), two = callOf(other + k);
    const auto areOfOneKind = [&](const Tensor &x, const Tensor &y) {
      return x.type == y.type &&
             names.reference(x, "row") == names.reference(y, "row");
    };
    if (one.function != two.function || one.group != two.group ||
        one.operation != two.operation || a.stream != b.stream ||
        a.overlapped != b.overlapped || !areOfOneKind(*one.from, *two.from) ||
        !areOfOneKind(*one.to, *two.to))
      return false;
  }
  return true;
}

/// Returns the number of rows, each of `length` instructions, of the table that
/// begins with instruction i.
std::size_t CollectiveLines::rowsFrom(std::size_t i, std::size_t end,
                                      std::size_t length, bool isGroup) const {
  const auto isRow = [&](std::size_t row) {
    if (row + length > end)
      return false;
    for (std::size_t k = row; k < row + length; ++k)
      if (isGroup ? !std::holds_alternative<Collective>(
                        program.instructions[k].what)
                  : !isWithin(k, row, length))
        return false;
    if (row == i)
      return true;
    for (std::size_t k = 0; k < length && !isGroup; ++k) {
      const std::vector<int> &first = program.instructions[i + k].waits,
                             &own = program.instructions[row + k].waits;
      if (!std::ranges::equal(first, own, [&](int x, int y) {
            return indexed(x) - i == indexed(y) - row;
          }))
        return false;
    }
    return areAlike(i, row, length);
  };
  std::size_t rows = 0;
  while (isRow(i + rows * length))
    ++rows;
  return rows;
}

std::size_t CollectiveLines::lengthOfRow(std::size_t i, std::size_t end,
                                         bool isGroup) const {
  constexpr std::size_t kLongest = 4; // maximum collectives per row
  for (std::size_t length = 1; length <= (isGroup ? 1 : kLongest); ++length)
    if (rowsFrom(i, end, length, isGroup) >= kLeastRows)
      return length;
  return 0;
}

std::size_t CollectiveLines::endOfTable(std::size_t i, std::size_t end,
                                        bool isGroup) const {
  const std::size_t length = lengthOfRow(i, end, isGroup);
  return length == 0 ? i : i + length * rowsFrom(i, end, length, isGroup);
}

/// Returns the arguments of a call in the loop over a table, and adds columns
/// to `table` for those that differ. `calls` has the call of each row.
std::vector<std::string>
CollectiveLines::argumentsOf(const std::vector<Call> &calls,
                             const std::string &run, Table &table) const {
  const Call &first = calls.front();
  const auto tensor = [&](const Tensor *Call::*which, const char *name) {
    std::vector<std::string> values;
    values.reserve(calls.size());
    for (const Call &call : calls)
      values.push_back("buf::" + names.buffer(indexed((call.*which)->buffer)));
    return names.reference(*(first.*which),
                           table.column("Buffer", name, std::move(values)));
  };
  const bool isInPlace = std::ranges::all_of(calls, [](const Call &call) {
    return call.from->buffer == call.to->buffer;
  });
  std::vector<std::string> arguments = {
      run, first.group, tensor(&Call::from, isInPlace ? "tensor" : "from"),
      tensor(&Call::to, "to")};
  for (std::size_t s = 0; s < first.sizes.size(); ++s) {
    std::vector<std::string> values;
    values.reserve(calls.size());
    for (const Call &call : calls)
      values.push_back(call.sizes[s]);
    const char *const name = first.sizes.size() == 1 ? "elements"
                             : s % 2 == 0            ? "outer"
                                                     : "inner";
    arguments.push_back(table.column("std::int64_t", name, std::move(values)));
  }
  if (!first.operation.empty())
    arguments.push_back(first.operation);
  return arguments;
}

void CollectiveLines::writeTable(std::size_t i, std::size_t end, bool isGroup) {
  const std::size_t length = lengthOfRow(i, end, isGroup),
                    rows = (end - i) / length;
  Table table;
  std::string kinds;
  std::vector<std::vector<std::string>> arguments;
  for (std::size_t k = 0; k < length; ++k) {
    std::vector<Call> calls;
    for (std::size_t r = 0; r < rows; ++r)
      calls.push_back(callOf(i + r * length + k));
    arguments.push_back(argumentsOf(calls, runOf(i + k), table));
    const auto &what = std::get<Collective>(program.instructions[i + k].what);
    kinds += (k > 0 ? ", then " : "") + std::string(wordOf(what.kind)) +
             " over " + plan.groups[indexed(what.group)].name;
  }
  text.comment(kinds + ", of each of these " + std::to_string(rows) +
               " tensors.");
  const std::string array =
      identifierFor(callOf(i).function + " rows", namesTaken);
  table.write(array, rows, text);
  text.open("for (const auto &row : " + array + ") {");
  const auto streamOf = [&](std::size_t k) {
    return shared.streams[indexed(program.instructions[i + k].stream)];
  };
  std::set<std::string> taken;
  std::vector<std::string> events(length);
  for (std::size_t k = 0; k < length; ++k) {
    if (!isGroup)
      for (const int early : program.instructions[i + k].waits)
        text.line("now.wait(" + streamOf(k) + ", " +
                  events[indexed(early) - i] + ");");
    text.call(callOf(i + k).function, arguments[k]);
    if (isGroup || lastWaiters[i + k] < 0)
      continue;
    const auto &what = std::get<Collective>(program.instructions[i + k].what);
    events[k] =
        identifierFor(plan.groups[indexed(what.group)].name + " done", taken);
    text.line("cudaEvent_t " + events[k] + " = now.done(" + streamOf(k) + ");");
  }
  text.close();
}

//===----------------------------------------------------------------------===//
// Causes
//===----------------------------------------------------------------------===//

/// Returns the label and the kernel of the operator that computes the operand
/// of a collective, or the buffer's name if an earlier program computes it.
std::string CollectiveLines::originOf(const Instruction &instruction) const {
  const Instruction *last = nullptr;
  for (const Instruction &early : program.instructions) {
    if (&early == &instruction)
      break;
    for (const Tensor &tensor : early.outputs)
      if (tensor.buffer == instruction.inputs[0].buffer)
        last = &early;
  }
  if (!last)
    return names.buffer(indexed(instruction.inputs[0].buffer));
  const auto *call = std::get_if<KernelCall>(&last->what);
  return last->label + (call ? " (" + call->kernel + ")" : "");
}

std::string CollectiveLines::causeOf(std::size_t i) const {
  const Instruction &instruction = program.instructions[i];
  const auto &call = std::get<Collective>(instruction.what);
  const std::string origin = originOf(instruction);
  std::string term =
      std::string("each rank has a ") +
      (call.reduction == Reduction::max ? "maximum in "
                                        : "term of the sum in ") +
      origin;
  const std::string &group = plan.groups[indexed(call.group)].name;
  constexpr std::string_view kStages = "pp ";
  switch (call.kind) {
  case CollectiveKind::allReduce:
    if (group.starts_with(kStages))
      return "the weight is tied, and each of the stages " +
             group.substr(kStages.size()) + " has a gradient of it";
    break;
  case CollectiveKind::allGather:
    return "each rank has a shard of " + dimensionText(call.gathered) + " of " +
           origin;
  case CollectiveKind::reduceScatter:
    return term + " and needs a shard of " + dimensionText(call.scattered);
  case CollectiveKind::allToAll:
    return "each rank has a shard of " + dimensionText(call.gathered) + " of " +
           origin + " and needs one of " + dimensionText(call.scattered);
  }
  return term;
}

} // namespace mtplan::codegen
