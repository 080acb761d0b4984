//===- statistics.cpp - Statistics of prediction errors -------------------===//

#include "tools/validate/statistics.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace mtplan::tools {

ErrorSummary summaryOf(const std::vector<double> &deviations) {
  ErrorSummary summary;
  summary.rows = deviations.size();
  if (deviations.empty())
    return summary;
  std::vector<double> sizes;
  for (double deviation : deviations) {
    sizes.push_back(std::fabs(deviation));
    summary.mean += sizes.back();
    summary.bias += deviation;
  }
  auto count = static_cast<double>(deviations.size());
  summary.mean /= count;
  summary.bias /= count;
  std::ranges::sort(sizes);
  summary.median =
      (sizes[(sizes.size() - 1) / 2] + sizes[sizes.size() / 2]) / 2;
  // The nearest rank is computed in integers, because 0.9 times a multiple of
  // ten is not exact in floating point.
  std::size_t rank = (deviations.size() * 9 + 9) / 10;
  summary.p90 = sizes[rank - 1];
  summary.worst = sizes.back();
  return summary;
}

static std::vector<double> ranksOf(const std::vector<double> &values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first;
    while (end < order.size() && values[order[end]] == values[order[first]])
      ++end;
    for (std::size_t i = first; i < end; ++i)
      ranks[order[i]] = static_cast<double>(first + end - 1) / 2;
    first = end;
  }
  return ranks;
}

double spearman(const std::vector<double> &one,
                const std::vector<double> &other) {
  std::vector<double> a = ranksOf(one), b = ranksOf(other);
  double mean = (static_cast<double>(a.size()) - 1) / 2;
  double both = 0.0, first = 0.0, second = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    both += (a[i] - mean) * (b[i] - mean);
    first += (a[i] - mean) * (a[i] - mean);
    second += (b[i] - mean) * (b[i] - mean);
  }
  return first > 0 && second > 0 ? both / std::sqrt(first * second) : 0.0;
}

const char *nameOf(Grouping grouping) {
  switch (grouping) {
  case Grouping::source:
    return "source";
  case Grouping::hardwareModel:
    return "hardware, model";
  case Grouping::sourceHardwareModel:
    return "source, hardware, model";
  case Grouping::precision:
    return "the same and precision";
  case Grouping::gpus:
    return "the same and GPUs";
  case Grouping::batch:
    return "the same, batch and sequence";
  }
  return "?";
}

static std::string keyOf(const RunRow &row, Grouping grouping) {
  std::string key = grouping == Grouping::hardwareModel ? "" : row.source;
  if (grouping == Grouping::source)
    return key;
  auto add = [&](const std::string &part) {
    key += (key.empty() ? "" : "; ") + part;
  };
  add(row.hardware);
  add(row.model);
  if (grouping >= Grouping::precision)
    add(row.precision);
  if (grouping >= Grouping::gpus)
    add(std::to_string(row.gpus) + " GPUs");
  if (grouping >= Grouping::batch)
    add("batch " + std::to_string(row.globalBatch) + " of " +
        std::to_string(row.sequence));
  return key;
}

RowGroup pricedRows(const std::vector<PricedRow> &rows) {
  RowGroup all;
  for (const PricedRow &priced : rows)
    if (priced.isPriced())
      all.rows.push_back(&priced);
  return all;
}

std::vector<RowGroup> groupsOf(const std::vector<PricedRow> &rows,
                               Grouping grouping) {
  std::map<std::string, RowGroup> groups;
  for (const PricedRow &priced : rows)
    if (priced.isPriced()) {
      std::string key = keyOf(priced.row, grouping);
      groups[key].name = key;
      groups[key].rows.push_back(&priced);
    }
  std::vector<RowGroup> result;
  result.reserve(groups.size());
  for (auto &[key, group] : groups)
    result.push_back(std::move(group));
  return result;
}

std::vector<PricedRow> pricesOf(const std::vector<RunRow> &rows,
                                RowPricer &pricer, Quantity quantity) {
  std::vector<PricedRow> all;
  for (const RunRow &row : rows) {
    if (measuredOf(row, quantity) > 0) {
      all.push_back(pricer.price(row, RowPricer::Memory::unlimited, quantity));
      continue;
    }
    all.emplace_back().row = row;
    all.back().excluded = quantity == Quantity::stepTime
                              ? "the time of a step is not stated"
                              : "the memory is not stated";
  }
  return all;
}

ErrorSummary summaryOf(const RowGroup &group, Quantity quantity) {
  std::vector<double> deviations;
  for (const PricedRow *priced : group.rows)
    deviations.push_back(priced->deviation(quantity));
  return summaryOf(deviations);
}

double spearman(const RowGroup &group) {
  std::vector<double> measured, predicted;
  for (const PricedRow *priced : group.rows) {
    measured.push_back(priced->row.stepSeconds);
    predicted.push_back(priced->predicted());
  }
  return spearman(measured, predicted);
}

RankSummary rankSummaryOf(const std::vector<PricedRow> &rows,
                          Grouping grouping) {
  RankSummary summary;
  for (const RowGroup &group : groupsOf(rows, grouping))
    if (group.rows.size() >= kLeastRanked) {
      ++summary.groups;
      summary.mean += spearman(group);
    }
  if (summary.groups > 0)
    summary.mean /= static_cast<double>(summary.groups);
  return summary;
}

} // namespace mtplan::tools
