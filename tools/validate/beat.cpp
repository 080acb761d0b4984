//===- beat.cpp - Plans against published configurations ------------------===//

#include "tools/validate/beat.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "tools/driver/plan_text.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using planner::Split;
using Verdict = PlanComparison::Verdict;

namespace {

std::string keyOf(const RunRow &row, const PricedRow &priced) {
  return fmt::format("{} {} on {} x {} ({}), batch {} of {}", row.model,
                     row.precision, row.gpus, priced.machine, priced.software,
                     row.globalBatch, row.sequence);
}

void searchOpen(const RowCase &one, PlanComparison &comparison) {
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
  comparison.searchSeconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  comparison.found = !result.plans.empty();
  if (!comparison.found)
    return;
  const planner::PlannedCandidate &best = result.plans.front();
  comparison.configuration =
      meshText(best.config) + ", " + batchText(best.config);
  if (std::string more = choicesText(best.config); !more.empty())
    comparison.configuration += ", " + more;
  comparison.planned = best.time.step.value;
  comparison.gap =
      result.optimal ? 0.0 : best.time.step / result.lowerBound - 1.0;
}

void keepFaster(std::optional<PublishedPrice> &fastest,
                const PricedRow &priced) {
  if (!fastest || priced.predicted() < fastest->seconds)
    fastest = {priced.row.id, priced.predicted(), priced.memory, priced.limit};
}

struct Group {
  PlanComparison comparison;
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
    while (at < groups.size() && groups[at].comparison.name != key)
      ++at;
    if (at == groups.size()) {
      groups.push_back({});
      groups.back().comparison.name = key;
    }
    groups[at].rows.push_back(row);
  }
  return groups;
}

void solve(Group &group, RowPricer &pricer) {
  PlanComparison &comparison = group.comparison;
  for (const RunRow &row : group.rows) {
    PricedRow priced = pricer.price(row);
    if (!priced.isPriced())
      continue;
    ++comparison.runs;
    // If a configuration's fastest strategies exceed the memory, slower
    // strategies may still fit.
    if (!priced.fits())
      if (PricedRow within = pricer.price(row, RowPricer::Memory::limited);
          within.isPriced() && within.fits())
        priced = within;
    keepFaster(priced.fits() ? comparison.fitting : comparison.tooLarge,
               priced);
  }
  PricedRow same;
  searchOpen(*pricer.caseOf(group.rows.front(), same), comparison);
}

std::string sizeText(const PublishedPrice &one) {
  return fmt::format("{:.1f} of {:.1f} GiB", one.memory.value / kGiB,
                     one.limit.value / kGiB);
}

std::string publishedText(const PublishedPrice &one, bool fits) {
  return fmt::format(
      "{:.4g} s {}{}", one.seconds, one.id,
      fits ? "" : " (by our estimate it needs " + sizeText(one) + ")");
}

std::size_t count(const std::vector<PlanComparison> &all, Verdict verdict) {
  return static_cast<std::size_t>(std::ranges::count(
      all, verdict, [](const PlanComparison &one) { return one.verdict(); }));
}

struct Total {
  const char *what;
  std::string value;
};

std::vector<Total> totalsOf(const std::vector<PlanComparison> &all) {
  std::size_t runs = 0, large = 0, optimal = 0, proved = 0;
  double sum = 0.0;
  std::vector<double> seconds;
  for (const PlanComparison &one : all) {
    runs += one.runs;
    large += one.tooLarge.has_value();
    optimal += one.found && one.gap == 0.0;
    proved += one.found && one.gap <= 0.001;
    sum += one.searchSeconds;
    seconds.push_back(one.searchSeconds);
  }
  std::ranges::sort(seconds);
  std::vector<Total> totals = {
      {"groups, published runs in them",
       fmt::format("{}, {}", all.size(), runs)},
      {"the plan fits and is at least as fast as every published run",
       std::to_string(count(all, Verdict::beaten))},
      {"it is slower only than runs that do not fit by our estimate",
       std::to_string(count(all, Verdict::beatsFitting))},
      {"it is slower than a run that fits",
       std::to_string(count(all, Verdict::slower))},
      {"no plan fits by our estimate",
       std::to_string(count(all, Verdict::nothingFits))},
      {"groups with a run that does not fit by our estimate",
       std::to_string(large)},
      {"plans proved to be the optimum of the space", std::to_string(optimal)},
      {"plans proved to be at most 0.1 % slower than the optimum",
       std::to_string(proved)}};
  if (!seconds.empty())
    totals.push_back(
        {"time of a search: median, longest, all",
         fmt::format("{:.2f} s, {:.1f} s, {:.0f} s",
                     seconds[seconds.size() / 2], seconds.back(), sum)});
  return totals;
}

std::string verdictText(const PlanComparison &one) {
  switch (one.verdict()) {
  case Verdict::beaten:
    return one.configuration;
  case Verdict::beatsFitting:
    return "slower only than what does not fit: " + one.configuration;
  case Verdict::slower:
    return "SLOWER: " + one.configuration;
  case Verdict::nothingFits:
    return one.fitting ? "NOTHING FOUND" : "nothing fits";
  }
  return {};
}

std::string cell(const std::optional<PublishedPrice> &one, bool fits) {
  if (!one)
    return {};
  return fmt::format("{:.4g} ({}{})", one->seconds, one->id,
                     fits ? "" : ", " + sizeText(*one));
}

std::string gapText(const PlanComparison &one) {
  return one.found ? fmt::format("{:.2g}", 100.0 * one.gap) : "-";
}

// Divides the plan's time by the time of the fastest published configuration
// that fits or, if none fits, of the fastest configuration.
std::string ratioOf(const PlanComparison &one) {
  const std::optional<PublishedPrice> &other =
      one.fitting ? one.fitting : one.tooLarge;
  if (!one.found || !other)
    return "-";
  return fmt::format("{:.3f}", one.planned / other->seconds);
}

} // namespace

PlanComparison::Verdict PlanComparison::verdict() const {
  auto isBeaten = [&](const std::optional<PublishedPrice> &one) {
    return !one || planned <= one->seconds * (1 + 1e-9);
  };
  if (!found)
    return Verdict::nothingFits;
  if (!isBeaten(fitting))
    return Verdict::slower;
  return isBeaten(tooLarge) ? Verdict::beaten : Verdict::beatsFitting;
}

std::vector<PlanComparison>
beat(const std::vector<RunRow> &rows, BeatPart part,
     const std::function<void(const PlanComparison &, std::size_t, std::size_t)>
         &done) {
  RowPricer pricer;
  std::vector<Group> groups = groupsOf(rows, pricer);
  std::vector<PlanComparison> all;
  for (std::size_t i = part.part - 1; i < groups.size(); i += part.parts) {
    solve(groups[i], pricer);
    all.push_back(groups[i].comparison);
    done(all.back(), i, groups.size());
  }
  return all;
}

std::string beatLine(const PlanComparison &one) {
  std::string text = fmt::format("{}: {} run{}, published ", one.name, one.runs,
                                 one.runs == 1 ? "" : "s");
  if (one.fitting)
    text += publishedText(*one.fitting, true);
  if (one.tooLarge)
    text += (one.fitting ? ", " : "") + publishedText(*one.tooLarge, false);
  if (one.found)
    text += fmt::format("; planned {:.4g} s, ratio {}, gap {} %", one.planned,
                        ratioOf(one), gapText(one));
  return text + fmt::format("; {}; searched {:.2f} s", verdictText(one),
                            one.searchSeconds);
}

std::string beatTotals(const std::vector<PlanComparison> &all) {
  std::string text;
  for (const Total &total : totalsOf(all))
    text += fmt::format("{}: {}\n", total.what, total.value);
  return text;
}

std::string beatMarkdown(const std::vector<PlanComparison> &all,
                         const std::string &csv) {
  std::string text = fmt::format(
      "# Planned and published configurations\n"
      "\n"
      "For every model, cluster, software and batch of [{0}]({0}): the plan "
      "that mtplan chooses with\n"
      "everything else open, beside the published configurations, all by our "
      "own prices and memory. A\n"
      "configuration that does not fit by our estimate is one that we could "
      "not choose: it is listed with what\n"
      "it needs, and counted apart. Made by\n"
      "`mtplan-validate docs/accuracy/{0} --beat --report "
      "docs/accuracy/beat.md`.\n"
      "\n"
      "|  |  |\n"
      "| --- | ---: |\n",
      csv);
  for (const Total &total : totalsOf(all))
    text += fmt::format("| {} | {} |\n", total.what, total.value);
  text += "\n"
          "| model, cluster, batch | runs | fastest published that fits, s | "
          "fastest that does not fit, s | planned, s | ratio | gap, % | plan | "
          "search, s |\n"
          "| --- | ---: | --- | --- | ---: | ---: | ---: | --- | ---: |\n";
  for (const PlanComparison &one : all)
    text += fmt::format(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {:.2f} |\n", one.name,
        one.runs, cell(one.fitting, true), cell(one.tooLarge, false),
        one.found ? fmt::format("{:.4g}", one.planned) : "-", ratioOf(one),
        gapText(one), verdictText(one), one.searchSeconds);
  return text;
}

} // namespace mtplan::tools
