//===- collective_rows.cpp - Measured and predicted collectives -----------===//

#include "tools/validate/collective_rows.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <stdexcept>

#include "planner/cost/collective_cost.h"
#include "planner/machine/machine_json.h"

namespace mtplan::tools {

namespace {

using Fields = std::vector<std::string>;

// Splits a line into fields. A quoted field may hold commas and doubled quotes.
Fields splitLine(const std::string &line) {
  Fields fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    char c = line[i];
    if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += '"';
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  return fields;
}

// Holds the lines of a table, whose first line names the columns.
class Table {
public:
  explicit Table(const std::string &text) {
    std::size_t start = 0;
    while (start < text.size()) {
      std::size_t end = std::min(text.find('\n', start), text.size());
      if (end > start)
        lines.push_back(splitLine(text.substr(start, end - start)));
      start = end + 1;
    }
    if (lines.empty())
      throw std::runtime_error("the table has no header line");
  }

  std::size_t size() const { return lines.size() - 1; }

  const std::string &at(std::size_t row, const std::string &column) const {
    auto name = std::ranges::find(lines.front(), column);
    if (name == lines.front().end())
      throw std::runtime_error("the table has no column \"" + column + '"');
    auto index = static_cast<std::size_t>(name - lines.front().begin());
    const Fields &fields = lines[row + 1];
    if (index >= fields.size())
      throw std::runtime_error("line " + std::to_string(row + 2) + " has " +
                               std::to_string(fields.size()) + " fields, \"" +
                               column + "\" is number " +
                               std::to_string(index + 1));
    return fields[index];
  }

  // Returns 0 for an empty or missing cell.
  double number(std::size_t row, const std::string &column) const {
    const std::string &field = at(row, column);
    try {
      return field.empty() ? 0.0 : std::stod(field);
    } catch (const std::logic_error &) {
      throw std::runtime_error("line " + std::to_string(row + 2) + ": \"" +
                               field + "\" in column \"" + column +
                               "\" is no number");
    }
  }

private:
  std::vector<Fields> lines;
};

} // namespace

double CollectiveRow::error() const { return predicted / measured - 1; }

std::vector<MachineOf> readMachineMap(const std::string &text) {
  Table table(text);
  std::vector<MachineOf> machines;
  for (std::size_t row = 0; row < table.size(); ++row)
    machines.push_back({table.at(row, "hardware"), table.at(row, "machine"),
                        table.at(row, "reason")});
  return machines;
}

std::vector<CollectiveRow> readRows(const std::string &table,
                                    const std::vector<MachineOf> &machines,
                                    double least, double most) {
  Table lines(table);
  std::map<std::string, planner::Machine> loaded;
  std::vector<CollectiveRow> rows;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    CollectiveRow row;
    row.line = static_cast<int>(i) + 2;
    row.source = lines.at(i, "source");
    row.hardware = lines.at(i, "hardware");
    row.gpus = static_cast<int>(lines.number(i, "gpus"));
    row.bytes = lines.number(i, "size_bytes");
    row.measured = lines.number(i, "time_us") * 1e-6;
    double bus = lines.number(i, "busbw_GBps") * 1e9;
    if (row.measured <= 0 && bus > 0)
      row.measured = 2.0 * (row.gpus - 1) / row.gpus * row.bytes / bus;
    if (lines.at(i, "collective") != "all_reduce" || row.gpus < 2 ||
        row.bytes < least || row.bytes > most || row.measured <= 0)
      continue;
    auto known =
        std::ranges::find(machines, row.hardware, &MachineOf::hardware);
    if (known == machines.end())
      throw std::runtime_error("line " + std::to_string(row.line) +
                               ": no machine is named for \"" + row.hardware +
                               '"');
    if (!known->machine.empty()) {
      if (!loaded.contains(known->machine))
        loaded[known->machine] = planner::loadMachine(known->machine);
      row.predicted =
          planner::collectiveTime(planner::StepKind::allReduce,
                                  planner::Bytes{row.bytes}, {row.gpus, 1},
                                  loaded[known->machine])
              .value;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

double medianError(const std::vector<CollectiveRow> &rows) {
  std::vector<double> errors;
  for (const CollectiveRow &row : rows)
    if (row.predicted > 0)
      errors.push_back(std::abs(row.error()));
  assert(!errors.empty());
  auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
  std::nth_element(errors.begin(), middle, errors.end());
  return *middle;
}

} // namespace mtplan::tools
