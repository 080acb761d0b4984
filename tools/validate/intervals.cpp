//===- intervals.cpp - Intervals of predicted times -----------------------===//

#include "tools/validate/intervals.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "planner/machine/machine_json.h"
#include "tools/text/table.h"

namespace mtplan::tools {

using planner::Accuracy;
using planner::Interval;

namespace {

/// The runs under a software on an architecture are divided after these numbers
/// of devices. The last entry has the runs on more devices.
constexpr std::int64_t kDevices[] = {16, 128};
/// They are divided only if both parts have at least so many runs.
constexpr std::size_t kFew = 20;

struct RunGroup {
  std::string software, device;
  std::vector<const PricedRow *> rows; ///< ascending numbers of devices
};

double ratioOf(const PricedRow &row) { return 1.0 / (1.0 + row.deviation()); }

Interval intervalOf(const std::vector<const PricedRow *> &rows,
                    const PricedRow *without = nullptr) {
  // The runs of a source resemble each other, so n of them together weigh as
  // the square root of n, relative to other sources.
  std::map<std::string, double> counts;
  for (const PricedRow *row : rows)
    counts[row->row.source] += row != without;
  std::vector<planner::Ratio> ratios;
  for (const PricedRow *row : rows)
    if (row != without)
      ratios.push_back(
          {ratioOf(*row), 1.0 / std::sqrt(counts[row->row.source])});
  return planner::intervalOf(std::move(ratios));
}

std::vector<RunGroup> groupsOfRuns(const std::vector<PricedRow> &rows) {
  std::map<std::pair<std::string, std::string>, std::vector<const PricedRow *>>
      groups;
  for (const PricedRow &row : rows)
    if (row.isPriced() && !row.assumedSoftware)
      groups[{row.software,
              planner::loadMachine(row.machine).device.architecture}]
          .push_back(&row);
  std::vector<RunGroup> all;
  for (auto &[names, group] : groups) {
    std::ranges::stable_sort(
        group, {}, [](const PricedRow *row) { return row->row.gpus; });
    RunGroup part{names.first, names.second, {}};
    std::size_t next = 0;
    for (const std::int64_t most : kDevices) {
      while (next < group.size() && group[next]->row.gpus <= most)
        part.rows.push_back(group[next++]);
      if (part.rows.size() >= kFew && group.size() - next >= kFew) {
        all.push_back(part);
        part.rows.clear();
      }
    }
    part.rows.insert(part.rows.end(), group.begin() + std::ptrdiff_t(next),
                     group.end());
    all.push_back(std::move(part));
  }
  return all;
}

} // namespace

std::map<std::string, std::vector<Accuracy>>
accuracyOf(const std::vector<PricedRow> &rows) {
  std::map<std::string, std::vector<Accuracy>> all;
  for (const RunGroup &one : groupsOfRuns(rows)) {
    const Interval interval = intervalOf(one.rows);
    all[one.software].push_back({one.device, static_cast<int>(one.rows.size()),
                                 static_cast<int>(one.rows.back()->row.gpus),
                                 interval.low, interval.high});
  }
  return all;
}

std::vector<Coverage> coverageOf(const std::vector<PricedRow> &rows) {
  std::map<std::string, Coverage> sources;
  for (const RunGroup &one : groupsOfRuns(rows))
    for (const PricedRow *row : one.rows) {
      const Interval interval = intervalOf(one.rows, row);
      Coverage &source = sources[row->row.source];
      ++source.rows;
      source.inside +=
          ratioOf(*row) >= interval.low && ratioOf(*row) <= interval.high;
      source.width += interval.high / interval.low - 1;
    }
  std::vector<Coverage> all;
  for (auto &[name, source] : sources) {
    source.source = name;
    source.width /= static_cast<double>(source.rows);
    all.push_back(source);
  }
  return all;
}

std::string intervalsText(const std::vector<PricedRow> &rows) {
  Table table;
  table.add({"source", "rows", "inside %", "mean width %"});
  Coverage total{"all", 0, 0, 0.0};
  const auto add = [&](const Coverage &one) {
    table.add({one.source, fmt::format("{}", one.rows),
               fmt::format("{:.0f}", 100.0 * static_cast<double>(one.inside) /
                                         static_cast<double>(one.rows)),
               fmt::format("{:.0f}", 100 * one.width)});
  };
  for (const Coverage &one : coverageOf(rows)) {
    add(one);
    total.rows += one.rows;
    total.inside += one.inside;
    total.width += one.width * static_cast<double>(one.rows);
  }
  if (total.rows > 0) {
    total.width /= static_cast<double>(total.rows);
    add(total);
  }
  Table entries;
  entries.add({"software", "device", "runs", "devices", "low", "high"});
  for (const auto &[software, list] : accuracyOf(rows))
    for (const Accuracy &one : list)
      entries.add({software, one.device, fmt::format("{}", one.runs),
                   fmt::format("{}", one.mostDevices),
                   fmt::format("{:.3f}", one.low),
                   fmt::format("{:.3f}", one.high)});
  return table.print("") + '\n' + entries.print("");
}

} // namespace mtplan::tools
