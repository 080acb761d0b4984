//===- few_shot.cpp - Sources learnt from a few of their runs -------------===//

#include "tools/validate/few_shot.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "tools/text/table.h"

namespace mtplan::tools {

namespace {

// Returns the indices of the rows from which a source may be learnt.
std::vector<std::size_t> candidatesOf(const std::vector<PricedRow> &rows,
                                      std::size_t count) {
  double smallest = INFINITY;
  for (const PricedRow &row : rows)
    smallest = std::min(smallest, row.row.parametersB.value_or(INFINITY));
  std::vector<std::size_t> found, all;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    all.push_back(i);
    if (rows[i].row.gpus <= kMostGpusToMeasure &&
        rows[i].row.parametersB == smallest)
      found.push_back(i);
  }
  if (found.size() >= count)
    return found;
  std::ranges::stable_sort(all, {},
                           [&](std::size_t i) { return rows[i].row.gpus; });
  if (all.size() > count) {
    const std::int64_t most =
        std::max(kMostGpusToMeasure, rows[all[count - 1]].row.gpus);
    std::erase_if(all, [&](std::size_t i) { return rows[i].row.gpus > most; });
  }
  return all;
}

/// Holds priced rows and their runs.
struct Runs {
  std::vector<PricedRow> rows;
  std::vector<FixedRun> runs;
};

void learn(Runs &all, std::size_t count, Quantity quantity, FewShot &result) {
  const planner::Software software = planner::loadSoftware(result.base);
  std::vector<bool> isLearnt(all.rows.size(), false);
  for (std::size_t i :
       suggestRuns(software, pointersTo(all.runs), {},
                   candidatesOf(all.rows, count), count, quantity))
    isLearnt[i] = true;
  std::vector<const FixedRun *> chosen;
  std::vector<double> measured;
  for (std::size_t i = 0; i < all.rows.size(); ++i)
    if (isLearnt[i]) {
      chosen.push_back(&all.runs[i]);
      measured.push_back(measuredOf(all.rows[i].row, quantity));
      result.learnt.push_back(all.rows[i]);
    }
  result.fit.software = software;
  result.fit.quantity = quantity;
  if (!chosen.empty())
    result.fit = fitSoftware(software, chosen, measured, quantity);
  for (std::size_t i = 0; i < all.rows.size(); ++i)
    if (!isLearnt[i]) {
      if (quantity == Quantity::stepTime)
        all.rows[i].time.step = all.runs[i].stepWith(result.fit.software);
      else
        all.rows[i].peakGiB = all.runs[i].peakGiBWith(result.fit.software);
      result.predicted.push_back(std::move(all.rows[i]));
    }
}

struct Range {
  std::int64_t least, most;
  const char *name;
};
constexpr Range kRanges[] = {{1, 16, "up to 16 GPUs"},
                             {17, 128, "17 to 128"},
                             {1, 128, "up to 128"},
                             {129, 1 << 30, "above 128"}};

void addRows(const FewShot &source, Table &table) {
  for (const Range &range : kRanges) {
    std::vector<PricedRow> rows;
    for (const PricedRow &row : source.predicted)
      if (row.row.gpus >= range.least && row.row.gpus <= range.most)
        rows.push_back(row);
    if (rows.empty())
      continue;
    const Quantity quantity = source.fit.quantity;
    const ErrorSummary errors = summaryOf(pricedRows(rows), quantity);
    const ChoiceSummary choice = quantity == Quantity::stepTime
                                     ? choiceSummaryOf(rows)
                                     : ChoiceSummary{};
    table.add(
        {source.source, range.name, fmt::format("{}", errors.rows),
         fmt::format("{:.1f}", 100 * errors.mean),
         fmt::format("{:.1f}", 100 * errors.median),
         fmt::format("{:.1f}", 100 * errors.p90),
         fmt::format("{:+.1f}", 100 * errors.bias),
         fmt::format("{}", choice.groups),
         choice.groups ? fmt::format("{:.2f}", choice.spearman) : "-",
         choice.groups ? fmt::format("{:.1f}", 100 * choice.meanRegret) : "-",
         choice.groups ? fmt::format("{:.1f}", 100 * choice.worstRegret)
                       : "-"});
  }
}

} // namespace

ChoiceSummary choiceSummaryOf(const std::vector<PricedRow> &rows) {
  ChoiceSummary summary;
  for (const RowGroup &group : groupsOf(rows, Grouping::batch)) {
    if (group.rows.size() < kLeastChoices)
      continue;
    const PricedRow *chosen = group.rows.front(), *best = chosen;
    for (const PricedRow *row : group.rows) {
      if (row->predicted() < chosen->predicted())
        chosen = row;
      if (row->row.stepSeconds < best->row.stepSeconds)
        best = row;
    }
    const double regret = chosen->row.stepSeconds / best->row.stepSeconds - 1;
    ++summary.groups;
    summary.spearman += spearman(group);
    summary.meanRegret += regret;
    summary.worstRegret = std::max(summary.worstRegret, regret);
  }
  if (summary.groups > 0) {
    summary.spearman /= static_cast<double>(summary.groups);
    summary.meanRegret /= static_cast<double>(summary.groups);
  }
  return summary;
}

std::vector<FewShot> fewShot(const std::vector<RunRow> &rows, std::size_t count,
                             const std::string &base, Quantity quantity) {
  RowPricer pricer(base);
  std::map<std::pair<std::string, std::string>, Runs> groups;
  for (const RunRow &row : rows) {
    PricedRow priced;
    if (measuredOf(row, quantity) <= 0)
      continue;
    if (std::optional<FixedRun> run = pricer.fix(row, priced, quantity)) {
      Runs &group = groups[{row.source, priced.software}];
      group.rows.push_back(std::move(priced));
      group.runs.push_back(std::move(*run));
    }
  }
  std::vector<FewShot> all;
  for (auto &[names, group] : groups) {
    FewShot &one = all.emplace_back();
    std::tie(one.source, one.base) = names;
    learn(group, count, quantity, one);
  }
  return all;
}

std::string fewShotText(const std::vector<FewShot> &sources) {
  Table table;
  table.add({"source", "clusters", "rows", "mean |error| %", "median %",
             "p90 %", "bias %", "groups", "rank correlation", "regret %",
             "worst %"});
  for (const FewShot &source : sources)
    addRows(source, table);
  std::string text = table.print("");
  for (const FewShot &source : sources) {
    text += fmt::format("\n{}: {} rows learnt, from {}\n", source.source,
                        source.learnt.size(), source.base);
    for (const PricedRow &row : source.learnt)
      text += fmt::format("  learnt {}\n", row.row.id);
    if (!source.learnt.empty())
      text += figuresText(source.fit);
  }
  return text;
}

} // namespace mtplan::tools
