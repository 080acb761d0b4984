//===- accuracy_svg.cpp - Predicted against measured, drawn ---------------===//

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "tools/validate/accuracy_text.h"

namespace mtplan::tools {

namespace {

constexpr double kSide = 560, kLeft = 70, kTop = 24, kLegend = 400;

// Ten hues with different lightness; further sources use them as rings.
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

/// A logarithmic axis over whole decades.
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
