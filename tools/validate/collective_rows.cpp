//===- collective_rows.cpp - Measured and predicted collectives -----------===//

#include "tools/validate/collective_rows.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <stdexcept>

#include "planner/cost/collective_cost.h"
#include "planner/machine/machine_json.h"
#include "tools/text/text_file.h"

namespace mtplan::tools {

namespace {

// Holds a table whose first line names the columns.
class Table {
public:
  explicit Table(const std::string &text) {
    for (CsvRecord &record : csvRecords(text))
      if (record.cells.size() > 1 || !record.cells.front().empty())
        lines.push_back(std::move(record));
    if (lines.empty())
      throw std::runtime_error("the table has no header line");
  }

  std::size_t size() const { return lines.size() - 1; }

  int line(std::size_t row) const { return lines[row + 1].line; }

  const std::string &at(std::size_t row, const std::string &column) const {
    auto name = std::ranges::find(lines.front().cells, column);
    if (name == lines.front().cells.end())
      throw std::runtime_error("the table has no column \"" + column + '"');
    auto index = static_cast<std::size_t>(name - lines.front().cells.begin());
    const std::vector<std::string> &fields = lines[row + 1].cells;
    if (index >= fields.size())
      throw std::runtime_error("line " + std::to_string(line(row)) + " has " +
                               std::to_string(fields.size()) + " fields, \"" +
                               column + "\" is number " +
                               std::to_string(index + 1));
    return fields[index];
  }

  // Returns 0 for an empty cell.
  double number(std::size_t row, const std::string &column) const {
    const std::string &field = at(row, column);
    try {
      return field.empty() ? 0.0 : std::stod(field);
    } catch (const std::logic_error &) {
      throw std::runtime_error("line " + std::to_string(line(row)) + ": \"" +
                               field + "\" in column \"" + column +
                               "\" is not a number");
    }
  }

private:
  std::vector<CsvRecord> lines;
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
    row.line = lines.line(i);
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
