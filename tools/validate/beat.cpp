//===- beat.cpp - Plans against published configurations ------------------===//

#include "tools/validate/beat.h"

#include <chrono>

#include <fmt/format.h>

#include "tools/driver/parallelism_text.h"

namespace mtplan::tools {

using planner::Split;

namespace {

std::string keyOf(const RunRow &row, const PricedRow &priced) {
  return fmt::format("{} {} on {} x {} ({}), batch {} of {}", row.model,
                     row.precision, row.gpus, priced.machine, priced.software,
                     row.globalBatch, row.sequence);
}

// Searches with everything open except machine, software and batch.
void plan(const RowCase &one, Beaten &beaten) {
  planner::SearchOptions options = one.options;
  options.pp = options.cp = options.virtualStages = options.zeroStage = {};
  options.schedule = {};
  options.recompute = {};
  options.pins = nullptr;
  options.tensorSplits = {Split::column, Split::row,      Split::head,
                          Split::vocab,  Split::sequence, Split::batch};
  auto start = std::chrono::steady_clock::now();
  planner::SearchResult result =
      planner::search(*one.graph, one.machine, options);
  beaten.searchSeconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  beaten.found = !result.plans.empty();
  if (!beaten.found)
    return;
  const planner::PlannedCandidate &best = result.plans.front();
  beaten.how = meshText(best.config) + ", " + batchText(best.config);
  if (std::string more = choicesText(best.config); !more.empty())
    beaten.how += ", " + more;
  beaten.planned = best.time.step.value;
  beaten.optimal = result.optimal;
}

void keepFaster(std::optional<PublishedPrice> &fastest,
                const PricedRow &priced) {
  if (!fastest || priced.predicted() < fastest->seconds)
    fastest = {priced.row.id, priced.predicted(), priced.memory, priced.limit};
}

/// Rows that one plan must beat.
struct Group {
  Beaten beaten;
  std::vector<RunRow> rows;
};

std::vector<Group> groupsOf(const std::vector<RunRow> &rows,
                            RowPricer &pricer) {
  std::vector<Group> groups;
  for (const RunRow &row : rows) {
    PricedRow priced;
    if (!pricer.caseOf(row, priced))
      continue;
    std::string key = keyOf(row, priced);
    std::size_t at = 0;
    while (at < groups.size() && groups[at].beaten.name != key)
      ++at;
    if (at == groups.size()) {
      groups.push_back({});
      groups.back().beaten.name = key;
    }
    groups[at].rows.push_back(row);
  }
  return groups;
}

void solve(Group &group, RowPricer &pricer) {
  Beaten &beaten = group.beaten;
  for (const RunRow &row : group.rows) {
    PricedRow priced = pricer.price(row);
    if (!priced.isPriced())
      continue;
    ++beaten.runs;
    // The fastest split of a configuration may need more memory than others.
    if (!priced.fits())
      if (PricedRow within = pricer.price(row, RowPricer::Memory::asItIs);
          within.isPriced() && within.fits())
        priced = within;
    keepFaster(priced.fits() ? beaten.fitting : beaten.tooLarge, priced);
  }
  PricedRow same;
  plan(*pricer.caseOf(group.rows.front(), same), beaten);
}

} // namespace

Beaten::Verdict Beaten::verdict() const {
  auto isBeaten = [&](const std::optional<PublishedPrice> &one) {
    return !one || planned <= one->seconds * (1 + 1e-9);
  };
  if (!found)
    return Verdict::nothingFits;
  if (!isBeaten(fitting))
    return Verdict::slower;
  return isBeaten(tooLarge) ? Verdict::beaten : Verdict::beatsFitting;
}

std::vector<Beaten> beat(
    const std::vector<RunRow> &rows, BeatPart part,
    const std::function<void(const Beaten &, std::size_t, std::size_t)> &done) {
  RowPricer pricer;
  std::vector<Group> groups = groupsOf(rows, pricer);
  std::vector<Beaten> all;
  for (std::size_t i = part.part - 1; i < groups.size(); i += part.parts) {
    solve(groups[i], pricer);
    all.push_back(groups[i].beaten);
    done(all.back(), i, groups.size());
  }
  return all;
}

} // namespace mtplan::tools
