//===- accuracy_text.cpp - The comparison on the screen -------------------===//

#include "tools/validate/accuracy_text.h"

#include <fmt/format.h>

#include "tools/text/table.h"

namespace mtplan::tools {

namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

std::string percent(double share) {
  return fmt::format("{:+.1f}", 100 * share);
}

std::vector<std::string> cellsOf(const PricedRow &priced) {
  const RunRow &row = priced.row;
  if (!priced.isPriced())
    return {row.id,
            fmt::format("{:.4g}", row.stepSeconds),
            "-",
            "-",
            "-",
            priced.error.empty() ? "left out: " + priced.excluded
                                 : "error: " + priced.error};
  return {row.id,
          fmt::format("{:.4g}", row.stepSeconds),
          fmt::format("{:.4g}", priced.predicted()),
          percent(priced.deviation()),
          fmt::format("{:.1f}{}", priced.memory.value / kGib,
                      priced.fits() ? "" : " too large"),
          priced.machine + ", " + priced.software +
              (priced.assumedSoftware ? " (assumed)" : "")};
}

} // namespace

std::string accuracyText(const std::vector<PricedRow> &rows) {
  Table table;
  table.add({"run", "measured s", "predicted s", "error %", "memory GiB",
             "priced as"});
  std::size_t excluded = 0, failed = 0, assumed = 0;
  for (const PricedRow &priced : rows) {
    table.add(cellsOf(priced));
    excluded += !priced.excluded.empty();
    failed += !priced.error.empty();
    assumed += priced.isPriced() && priced.assumedSoftware;
  }
  std::string text = table.print("") + '\n';
  Table sources;
  sources.add({"source", "rows", "mean |error| %", "p90 %", "bias %"});
  auto add = [&](const std::string &name, const ErrorSummary &summary) {
    sources.add({name, std::to_string(summary.rows),
                 fmt::format("{:.2f}", 100 * summary.mean),
                 fmt::format("{:.2f}", 100 * summary.p90),
                 fmt::format("{:+.2f}", 100 * summary.bias)});
  };
  RowGroup all;
  for (const RowGroup &group : groupsOf(rows, Grouping::source)) {
    add(group.name, summaryOf(group));
    all.rows.insert(all.rows.end(), group.rows.begin(), group.rows.end());
  }
  add("all", summaryOf(all));
  text += sources.print("") + '\n';
  Table ranks;
  ranks.add({"rank correlation within rows of one", "groups", "mean"});
  for (Grouping grouping :
       {Grouping::hardwareModel, Grouping::sourceHardwareModel,
        Grouping::precision, Grouping::gpus, Grouping::batch}) {
    RankSummary summary = rankSummaryOf(rows, grouping);
    ranks.add({nameOf(grouping), std::to_string(summary.groups),
               fmt::format("{:.3f}", summary.mean)});
  }
  text += ranks.print("");
  text += fmt::format("\n{} rows: {} priced, {} of them by software assumed "
                      "from flags; {} left out; {} cannot be priced\n",
                      rows.size(), all.rows.size(), assumed, excluded, failed);
  return text;
}

} // namespace mtplan::tools
