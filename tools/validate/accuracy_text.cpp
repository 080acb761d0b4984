//===- accuracy_text.cpp - The comparison as text, page and drawing -------===//

#include "tools/validate/accuracy_text.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "tools/runs/weak_scaling.h"
#include "tools/text/table.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

namespace {

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
          fmt::format("{:+.1f}", 100 * priced.deviation()),
          fmt::format("{:.1f}{}", priced.memory.value / kGiB,
                      priced.fits() ? "" : " too large"),
          priced.machine + ", " + priced.software +
              (priced.assumedSoftware ? " (assumed)" : "")};
}

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
  for (Grouping grouping : kRankedGroupings) {
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
    text += line({priced->row.id, priced->row.model, layoutOf(priced->row),
                  fmt::format("{:.4g}", priced->row.stepSeconds),
                  fmt::format("{:.4g}", priced->predicted()),
                  percent(priced->deviation(), "{:+.1f}"),
                  fmt::format("{:.1f} of {:.1f}", priced->memory.value / kGiB,
                              priced->limit.value / kGiB)});
  return text;
}

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

constexpr double kSide = 560, kLeft = 70, kTop = 24, kLegend = 400;

// These colours differ in lightness. They mark the first ten sources; rings in
// the same colours mark further sources.
constexpr std::array<const char *, 10> kColours = {
    "#1f5fa8", "#d95f02", "#2f8f4e", "#a6278f", "#8c6d1f",
    "#c23b3b", "#17878f", "#6a51a3", "#555555", "#e0a100"};

std::string escaped(const std::string &text) {
  std::string out;
  for (char c : text)
    out += c == '&'   ? "&amp;"
           : c == '<' ? "&lt;"
           : c == '>' ? "&gt;"
                      : std::string(1, c);
  return out;
}

class Decades {
public:
  explicit Decades(const std::vector<PricedRow> &rows) {
    double low = INFINITY, high = 0.0;
    for (const PricedRow &priced : rows)
      if (priced.isPriced())
        for (double time : {priced.row.stepSeconds, priced.predicted()}) {
          low = std::min(low, time);
          high = std::max(high, time);
        }
    if (high > 0.0) {
      first = static_cast<int>(std::floor(std::log10(low)));
      last = std::max(first + 1, static_cast<int>(std::ceil(std::log10(high))));
    }
  }
  double at(double seconds) const {
    return kSide * (std::log10(seconds) - first) / (last - first);
  }
  int first = 0, last = 1;
};

std::string grid(const Decades &axis) {
  std::string text;
  for (int decade = axis.first; decade <= axis.last; ++decade) {
    double at = axis.at(std::pow(10.0, decade));
    std::string label = fmt::format("{:g} s", std::pow(10.0, decade));
    double x = kLeft + at, y = kTop + kSide - at;
    text += fmt::format("<path class=\"grid\" d=\"M{:.1f} {:.1f}v{:.1f}M{:.1f} "
                        "{:.1f}h{:.1f}\"/>\n",
                        x, kTop, kSide, kLeft, y, kSide);
    text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" "
                        "text-anchor=\"middle\">{}</text>\n",
                        x, kTop + kSide + 18, label);
    text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" "
                        "text-anchor=\"end\">{}</text>\n",
                        kLeft - 8, y + 4, label);
  }
  // Lines mark equality and errors of 10 %.
  double off = axis.at(1.1) - axis.at(1.0);
  for (double shift : {0.0, off, -off}) {
    double from = std::max(0.0, -shift), to = std::min(kSide, kSide - shift);
    text += fmt::format(
        "<path class=\"{}\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\"/>\n",
        shift == 0.0 ? "right" : "tenth", kLeft + from,
        kTop + kSide - from - shift, kLeft + to, kTop + kSide - to - shift);
  }
  return text;
}

std::string mark(double x, double y, std::size_t source) {
  const char *colour = kColours[source % kColours.size()];
  bool ring = source >= kColours.size();
  return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.2\" "
                     "fill=\"{}\" stroke=\"{}\"/>",
                     x, y, ring ? "none" : colour, colour);
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
  for (Grouping grouping : kRankedGroupings) {
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

std::string accuracyMarkdown(const std::vector<PricedRow> &rows,
                             const std::string &csv, const std::string &svg) {
  const RowGroup all = pricedRows(rows);
  const auto tooLarge = std::ranges::count_if(
      all.rows, [](const PricedRow *priced) { return !priced->fits(); });
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

std::string accuracySvg(const std::vector<PricedRow> &rows) {
  Decades axis(rows);
  double width = kLeft + kSide + kLegend, height = kTop + kSide + 52;
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n"
      "<style>.grid{{stroke:#ddd}}.right{{stroke:#444}}.tenth{{stroke:#999;"
      "stroke-dasharray:4 4}}circle{{fill-opacity:.6}}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      width, height);
  text += grid(axis);
  text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">"
                      "measured step (dashed: a tenth off)</text>\n",
                      kLeft + kSide / 2, height - 12);
  text += fmt::format("<text transform=\"translate(14 {:.1f}) rotate(-90)\" "
                      "text-anchor=\"middle\">predicted step</text>\n",
                      kTop + kSide / 2);
  std::vector<RowGroup> sources = groupsOf(rows, Grouping::source);
  for (std::size_t s = 0; s < sources.size(); ++s) {
    for (const PricedRow *priced : sources[s].rows)
      text += mark(kLeft + axis.at(priced->row.stepSeconds),
                   kTop + kSide - axis.at(priced->predicted()), s) +
              '\n';
    double y = kTop + 10 + 20 * static_cast<double>(s);
    text += mark(kLeft + kSide + 22, y - 4, s);
    text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{} ({})</text>\n",
                        kLeft + kSide + 34, y, escaped(sources[s].name),
                        sources[s].rows.size());
  }
  return text + "</svg>\n";
}

} // namespace mtplan::tools
