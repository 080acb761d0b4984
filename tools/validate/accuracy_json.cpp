//===- accuracy_json.cpp - The comparison as JSON -------------------------===//

#include <nlohmann/json.hpp>

#include "tools/validate/accuracy_text.h"

namespace mtplan::tools {

using Json = nlohmann::ordered_json;

static Json jsonOf(const ErrorSummary &summary) {
  return {{"rows", summary.rows},
          {"mean_absolute_error", summary.mean},
          {"p90", summary.p90},
          {"bias", summary.bias}};
}

static Json jsonOf(const PricedRow &priced) {
  Json entry = {{"id", priced.row.id}, {"measured_s", priced.row.stepSeconds}};
  if (!priced.excluded.empty())
    entry["left_out"] = priced.excluded;
  if (!priced.error.empty())
    entry["error"] = priced.error;
  if (!priced.isPriced())
    return entry;
  entry["predicted_s"] = priced.predicted();
  entry["deviation"] = priced.deviation();
  entry["hardware"] = priced.machine;
  entry["software"] = priced.software;
  entry["software_assumed"] = priced.assumedSoftware;
  entry["memory_bytes"] = priced.memory.value;
  entry["memory_limit_bytes"] = priced.limit.value;
  entry["fits"] = priced.fits();
  return entry;
}

std::string accuracyJson(const std::vector<PricedRow> &rows) {
  Json file;
  file["rows"] = Json::array();
  for (const PricedRow &priced : rows)
    file["rows"].push_back(jsonOf(priced));
  file["overall"] = jsonOf(summaryOf(pricedRows(rows)));
  file["sources"] = Json::array();
  for (const RowGroup &group : groupsOf(rows, Grouping::source)) {
    Json entry = {{"source", group.name}};
    entry.update(jsonOf(summaryOf(group)));
    file["sources"].push_back(std::move(entry));
  }
  file["rank_correlation"] = Json::array();
  for (Grouping grouping : kRankedGroupings) {
    RankSummary summary = rankSummaryOf(rows, grouping);
    Json groups = Json::array();
    for (const RowGroup &group : groupsOf(rows, grouping))
      if (group.rows.size() >= kLeastRanked)
        groups.push_back({{"group", group.name},
                          {"rows", group.rows.size()},
                          {"spearman", spearman(group)}});
    file["rank_correlation"].push_back(
        {{"rows_of_one", nameOf(grouping)},
         {"groups_of_3_and_more", summary.groups},
         {"mean_spearman", summary.mean},
         {"groups", std::move(groups)}});
  }
  return file.dump(2) + '\n';
}

} // namespace mtplan::tools
