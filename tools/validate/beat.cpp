//===- beat.cpp - Our plans against published configurations --------------===//

#include "tools/validate/beat.h"

#include <fmt/format.h>

#include "tools/how_text.h"
#include "tools/table.h"

namespace mtplan::tools {

using planner::Split;

namespace {

std::string keyOf(const RunRow &row, const PricedRow &priced) {
  return fmt::format("{} {} on {} x {} ({}), batch {} of {}", row.model,
                     row.precision, row.gpus, priced.machine, priced.software,
                     row.globalBatch, row.sequence);
}

// Everything open that a row may fix but machine, software and batch.
void plan(const RowCase &one, Beaten &beaten) {
  planner::SearchOptions options = one.options;
  options.pp = options.cp = options.virtualStages = options.zeroStage = {};
  options.schedule = {};
  options.recompute = {};
  options.pins = nullptr;
  options.tensorSplits = {Split::column, Split::row,      Split::head,
                          Split::vocab,  Split::sequence, Split::batch};
  planner::SearchResult result =
      planner::search(*one.graph, one.machine, options);
  beaten.found = !result.plans.empty();
  if (!beaten.found)
    return;
  const planner::PlannedCandidate &best = result.plans.front();
  beaten.how = meshText(best.how) + ", " + batchText(best.how);
  if (std::string more = choicesText(best.how); !more.empty())
    beaten.how += ", " + more;
  beaten.planned = best.time.step.value;
  beaten.optimal = result.optimal;
}

} // namespace

std::vector<Beaten> beat(const std::vector<RunRow> &rows) {
  std::vector<Beaten> all;
  std::vector<std::unique_ptr<RowCase>> cases;
  RowPricer pricer;
  for (const RunRow &row : rows) {
    PricedRow priced = pricer.price(row);
    if (!priced.isPriced())
      continue;
    std::string key = keyOf(row, priced);
    std::size_t at = 0;
    while (at < all.size() && all[at].name != key)
      ++at;
    if (at == all.size()) {
      PricedRow same;
      all.push_back({});
      all.back().name = key;
      cases.push_back(pricer.caseOf(row, same));
    }
    Beaten &beaten = all[at];
    bool first = beaten.ids.empty();
    beaten.ids.push_back(row.id);
    if (first || priced.predicted() < beaten.published) {
      beaten.fastest = row.id;
      beaten.published = priced.predicted();
      beaten.publishedFits = priced.fits();
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i)
    plan(*cases[i], all[i]);
  return all;
}

std::string beatText(const std::vector<Beaten> &all) {
  Table table;
  table.add({"model, cluster, batch", "runs", "fastest published s",
             "planned s", "ratio", "plan"});
  std::size_t beaten = 0;
  for (const Beaten &one : all) {
    beaten += one.isBeaten();
    table.add(
        {one.name, std::to_string(one.ids.size()),
         fmt::format("{:.4g} {}{}", one.published, one.fastest,
                     one.publishedFits ? "" : " (too large)"),
         one.found ? fmt::format("{:.4g}", one.planned) : "-",
         one.found ? fmt::format("{:.3f}", one.planned / one.published) : "-",
         !one.found       ? "nothing fits"
         : one.isBeaten() ? one.how
                          : "SLOWER: " + one.how});
  }
  return table.print("") +
         fmt::format("\n{} of {} are planned to be at least as fast as every "
                     "published run, by our prices, and fit\n",
                     beaten, all.size());
}

} // namespace mtplan::tools
