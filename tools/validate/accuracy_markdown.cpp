//===- accuracy_markdown.cpp - The comparison as a page -------------------===//

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tools/validate/accuracy_text.h"
#include "tools/validate/weak_scaling.h"

namespace mtplan::tools {

namespace {

/// Returns a row of a Markdown table.
std::string line(const std::vector<std::string> &cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

std::string percent(double share, const char *form = "{:.2f}") {
  // Adding 0.0 prevents "-0.00".
  double value = std::round(share * 1e4) / 1e2 + 0.0;
  return fmt::format(fmt::runtime(form), value);
}

std::string overview(const std::vector<PricedRow> &rows, const RowGroup &all) {
  ErrorSummary summary = summaryOf(all);
  double worst = 0.0;
  for (const RowGroup &group : groupsOf(rows, Grouping::source))
    if (double bias = summaryOf(group).bias; std::fabs(bias) > std::fabs(worst))
      worst = bias;
  RankSummary ranks = rankSummaryOf(rows, Grouping::hardwareModel);
  std::string text =
      line({"", "rows", "mean absolute error", "p90", "worst bias of a source",
            "mean rank correlation (one model on one cluster)"}) +
      line({"---", "---:", "---:", "---:", "---:", "---:"}) +
      line({"asked for", "", "<= 8 %", "<= 18 %", "<= 8 % either way",
            ">= 0.9"}) +
      line({"found", std::to_string(summary.rows), percent(summary.mean) + " %",
            percent(summary.p90) + " %", percent(worst, "{:+.2f}") + " %",
            fmt::format("{:.3f} ({} groups of {} and more rows)", ranks.mean,
                        ranks.groups, kLeastRanked)});
  return text;
}

std::string sources(const std::vector<PricedRow> &rows) {
  std::string text = line({"source", "rows", "mean absolute error %", "p90 %",
                           "bias %", "priced as"}) +
                     line({"---", "---:", "---:", "---:", "---:", "---"});
  for (const RowGroup &group : groupsOf(rows, Grouping::source)) {
    ErrorSummary summary = summaryOf(group);
    std::vector<std::string> how;
    for (const PricedRow *priced : group.rows) {
      std::string one = priced->software + " on " + priced->machine +
                        (priced->assumedSoftware ? " (assumed)" : "");
      if (std::ranges::find(how, one) == how.end())
        how.push_back(one);
    }
    std::ranges::sort(how);
    text +=
        line({group.name, std::to_string(summary.rows), percent(summary.mean),
              percent(summary.p90), percent(summary.bias, "{:+.2f}"),
              fmt::format("{}", fmt::join(how, "; "))});
  }
  return text;
}

std::string ranks(const std::vector<PricedRow> &rows) {
  std::string text =
      line({"rows of one", "groups of 3 and more rows", "mean", "below 0.9"}) +
      line({"---", "---:", "---:", "---"});
  for (Grouping grouping :
       {Grouping::hardwareModel, Grouping::sourceHardwareModel,
        Grouping::precision, Grouping::gpus, Grouping::batch}) {
    RankSummary summary = rankSummaryOf(rows, grouping);
    std::vector<std::string> below;
    for (const RowGroup &group : groupsOf(rows, grouping))
      if (group.rows.size() >= kLeastRanked)
        if (double rank = spearman(group); rank < 0.9)
          below.push_back(fmt::format("{} ({} rows): {:.2f}", group.name,
                                      group.rows.size(), rank + 0.0));
    text += line({nameOf(grouping), std::to_string(summary.groups),
                  fmt::format("{:.3f}", summary.mean),
                  fmt::format("{}", fmt::join(below, "<br>"))});
  }
  return text;
}

std::string scaling() {
  std::string text =
      "Megatron-LM 2019 (arXiv:1909.08053, figure 5): speed per GPU over that "
      "of the smallest model on one GPU of a\nDGX-2H, tensor ranks alone and "
      "with 64 replicas. It is in none of the rows above, and has no constant "
      "of its own.\nWhich models sum gradients while backward runs, and the "
      "last row, are from the README of Megatron-LM.\n\n" +
      line({"GPUs", "model", "gradients summed", "published %", "predicted %",
            "difference"}) +
      line({"---:", "---", "---", "---:", "---:", "---:"});
  for (const ScalingPoint &point : weakScaling())
    text += line(
        {std::to_string(point.run.gpus),
         fmt::format("{} layers of {}", point.run.layers, point.run.hidden),
         point.run.dp == 1                  ? "-"
         : point.run.notesHave("DDP=local") ? "after backward"
                                            : "during backward",
         fmt::format("{:.0f}", 100 * point.published),
         fmt::format("{:.1f}", 100 * point.predicted),
         percent(point.predicted - point.published, "{:+.1f}")});
  return text;
}

std::string layoutOf(const RunRow &row) {
  std::string text = fmt::format("{} GPUs, tp {} pp {} cp {}", row.gpus, row.tp,
                                 row.pp, row.cp);
  if (row.chunks > 1)
    text += fmt::format(" vp {}", row.chunks);
  if (row.zeroStage > 0)
    text += fmt::format(", ZeRO-{}", row.zeroStage);
  if (row.recompute != "none" && !row.recompute.empty())
    text += ", " + row.recompute + " recomputation";
  return text + fmt::format(", {} tokens", row.sequence);
}

std::string worst(const RowGroup &all) {
  constexpr std::size_t kShown = 20;
  std::vector<const PricedRow *> order = all.rows;
  std::ranges::stable_sort(order, std::greater<>{}, [](const PricedRow *row) {
    return std::fabs(row->deviation());
  });
  order.resize(std::min(order.size(), kShown));
  std::string text =
      line({"run", "model", "layout", "measured s", "predicted s", "error %",
            "memory GiB"}) +
      line({"---", "---", "---", "---:", "---:", "---:", "---:"});
  for (const PricedRow *priced : order)
    text +=
        line({priced->row.id, priced->row.model, layoutOf(priced->row),
              fmt::format("{:.4g}", priced->row.stepSeconds),
              fmt::format("{:.4g}", priced->predicted()),
              percent(priced->deviation(), "{:+.1f}"),
              fmt::format("{:.1f} of {:.1f}", priced->memory.value / (1 << 30),
                          priced->limit.value / (1 << 30))});
  return text;
}

// Returns the rows without a price, by reason.
std::string missing(const std::vector<PricedRow> &rows) {
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
  for (const PricedRow &priced : rows) {
    if (priced.isPriced())
      continue;
    std::string why = priced.error.empty()
                          ? priced.excluded
                          : "cannot be priced: " + priced.error;
    auto found =
        std::ranges::find(reasons, why, &decltype(reasons)::value_type::first);
    if (found == reasons.end())
      found = reasons.insert(reasons.end(), {why, {}});
    found->second.push_back(priced.row.id);
  }
  std::string text;
  for (const auto &[why, ids] : reasons)
    text += fmt::format("* {}: {}\n", why, fmt::join(ids, ", "));
  return text.empty() ? "None.\n" : text;
}

} // namespace

std::string accuracyMarkdown(const std::vector<PricedRow> &rows,
                             const std::string &csv, const std::string &svg) {
  RowGroup all;
  std::size_t tooLarge = 0;
  for (const PricedRow &priced : rows)
    if (priced.isPriced()) {
      all.rows.push_back(&priced);
      tooLarge += !priced.fits();
    }
  std::string text =
      "# Predicted and measured step times\n\n"
      "Every row of [" +
      csv + "](" + csv +
      "), a published training run, "
      "priced as it stands: the same model graph, machine\nand software files, "
      "search and simulator as any plan, with everything fixed that the row "
      "says. Made by\n`mtplan-validate`, which takes any file of these "
      "columns; how the constants came about, and what is known not to\nbe "
      "covered, is in [the study](../studies/step-time/README.md).\n\n";
  text += overview(rows, all);
  if (!svg.empty())
    text += "\n![predicted against measured](" + svg + ")\n";
  text += "\n## By source\n\n" + sources(rows);
  text += "\n## Rank correlation of step times (Spearman)\n\n" + ranks(rows);
  text += "\n## Weak scaling\n\n" + scaling();
  text += "\n## The largest errors\n\n" + worst(all);
  text += fmt::format(
      "\nPlans that our estimate of memory calls too large are priced all the "
      "same: {} of the {}.\n",
      tooLarge, all.rows.size());
  text += "\n## Not in the figures\n\nBy reasons that do not look at the "
          "error:\n\n" +
          missing(rows);
  return text;
}

} // namespace mtplan::tools
