//===- memory_text.cpp - Reports of predicted memory ----------------------===//

#include "tools/validate/memory_text.h"

#include <map>

#include <fmt/format.h>

#include "tools/text/table.h"

namespace mtplan::tools {

namespace {

std::vector<std::string> cellsOf(const PricedRow &priced) {
  const RunRow &row = priced.row;
  const std::string measured = fmt::format("{:.2f}", row.peakGiB);
  if (!priced.isPriced())
    return {row.id, measured, "-", "-",
            priced.error.empty() ? "left out: " + priced.excluded
                                 : "error: " + priced.error};
  return {row.id, measured, fmt::format("{:.2f}", priced.peakGiB),
          fmt::format("{:+.1f}", 100 * priced.deviation(Quantity::peakMemory)),
          priced.machine + ", " + priced.software};
}

std::string percent(double share) { return fmt::format("{:.1f}", 100 * share); }

} // namespace

std::string memoryText(const std::vector<PricedRow> &rows) {
  Table table;
  table.add({"run", "measured GiB", "predicted GiB", "error %", "priced as"});
  std::map<std::pair<std::string, std::string>, RowGroup> groups;
  for (const PricedRow &priced : rows) {
    table.add(cellsOf(priced));
    if (priced.isPriced())
      groups[{priced.row.source, priced.row.memoryKind}].rows.push_back(
          &priced);
  }
  Table sources;
  sources.add({"source", "memory", "rows", "mean |error| %", "median %",
               "p90 %", "worst %", "bias %"});
  for (const auto &[names, group] : groups) {
    const ErrorSummary errors = summaryOf(group, Quantity::peakMemory);
    sources.add({names.first, names.second.empty() ? "unknown" : names.second,
                 fmt::format("{}", errors.rows), percent(errors.mean),
                 percent(errors.median), percent(errors.p90),
                 percent(errors.worst),
                 fmt::format("{:+.1f}", 100 * errors.bias)});
  }
  return table.print("") + '\n' + sources.print("");
}

} // namespace mtplan::tools
