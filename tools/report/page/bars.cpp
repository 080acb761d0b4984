//===- bars.cpp - Stacked bars --------------------------------------------===//

#include "tools/report/page/bars.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tools/report/page/html.h"

namespace mtplan::tools {

namespace {

// These dimensions are in units of the drawing.
constexpr double kLeft = 150, kRight = 890, kTop = 8, kBelow = 24;
constexpr std::size_t kMostName = 22; // limit of characters beside a bar
constexpr int kMostBars = 64; // limit of drawn bars; more are sampled evenly

double partOf(const PageBar &bar, std::size_t part) {
  return part < bar.parts.size() ? std::max(0.0, drawable(bar.parts[part]))
                                 : 0.0;
}

int colourOf(const PageBars &bars, std::size_t part) {
  int colour = bars.parts[part].colour;
  return colour >= 0 && colour < kPageColours
             ? colour
             : static_cast<int>(part % kPageColours);
}

double totalOf(const PageBar &bar) {
  if (std::isfinite(bar.total))
    return bar.total;
  double sum = 0;
  for (double part : bar.parts)
    sum += drawable(part);
  return sum;
}

double drawnLength(const PageBar &bar, std::size_t parts) {
  double sum = 0;
  for (std::size_t part = 0; part < parts; ++part)
    sum += partOf(bar, part);
  return drawable(sum);
}

class Drawing {
public:
  Drawing(const PageBars &theBars, const BarsLook &theLook)
      : bars(theBars), look(theLook),
        shown(evenly(static_cast<int>(bars.bars.size()), kMostBars)),
        pitch(shown.size() <= 16   ? 26
              : shown.size() <= 32 ? 18
                                   : 13),
        bottom(kTop + pitch * static_cast<double>(shown.size())) {
    most = std::max(0.0, drawable(bars.limit));
    for (const PageBar &bar : bars.bars)
      most = std::max(most, drawnLength(bar, bars.parts.size()));
    most *= 1.02;
  }

  std::string print() {
    text = fmt::format("<div class=\"wide\"><svg class=\"chart\" viewBox=\"0 0 "
                       "1000 {}\" role=\"img\" aria-label=\"{}\">\n",
                       coordinate(bottom + kBelow), escaped(look.title));
    axis();
    for (std::size_t row = 0; row < shown.size(); ++row)
      bar(bars.bars[static_cast<std::size_t>(shown[row])],
          kTop + pitch * static_cast<double>(row));
    limit();
    return text + "</svg></div>\n";
  }

private:
  double across(double value) const {
    return kLeft + (most > 0 ? value / most : 0) * (kRight - kLeft);
  }

  void axis() {
    for (double tick : ticksOf(0, most, look.unit)) {
      std::string x = coordinate(across(tick));
      text += fmt::format("<path class=\"grid\" d=\"M{0} {1}V{2}\"/><text "
                          "class=\"mid\" x=\"{0}\" y=\"{3}\">{4}</text>\n",
                          x, coordinate(kTop), coordinate(bottom + 3),
                          coordinate(bottom + 17), look.unit.text(tick));
    }
  }

  void bar(const PageBar &bar, double y) {
    double height = pitch * 0.72, middle = y + pitch / 2;
    const char *small = pitch < 18 ? " small" : "";
    text += fmt::format("<text class=\"end{}\" x=\"{}\" y=\"{}\">{}</text>",
                        small, coordinate(kLeft - 8), coordinate(middle + 4),
                        escaped(bar.name, kMostName));
    double before = 0;
    for (std::size_t part = 0; part < bars.parts.size(); ++part) {
      double value = partOf(bar, part);
      if (value <= 0)
        continue;
      text += fmt::format("<rect class=\"c{}\" x=\"{}\" y=\"{}\" width=\"{}\" "
                          "height=\"{}\"><title>{}: {} {}</title></rect>",
                          colourOf(bars, part), coordinate(across(before)),
                          coordinate(middle - height / 2),
                          coordinate(across(before + value) - across(before)),
                          coordinate(height), escaped(bar.name, 80),
                          escaped(bars.parts[part].name, 80),
                          look.unit.text(value));
      before += value;
    }
    if (look.hasTotals)
      text += fmt::format("<text class=\"{}{}\" x=\"{}\" y=\"{}\">{}{}</text>",
                          totalOf(bar) > bars.limit ? "over" : "start", small,
                          coordinate(kRight + 8), coordinate(middle + 4),
                          look.unit.text(totalOf(bar)),
                          totalOf(bar) > bars.limit ? " over" : "");
    text += '\n';
  }

  void limit() {
    if (!std::isfinite(bars.limit) || bars.limit <= 0)
      return;
    text += fmt::format(
        "<path class=\"limit\" d=\"M{} {}V{}\"><title>{}: {}</title></path>\n",
        coordinate(across(bars.limit)), coordinate(kTop - 6),
        coordinate(bottom + 3), escaped(look.limitName, 80),
        look.unit.text(bars.limit));
  }

  const PageBars &bars;
  const BarsLook &look;
  std::vector<int> shown;
  double pitch, bottom, most = 0;
  std::string text;
};

std::string shareText(double part, double whole) {
  double share = 100 * part / whole;
  return std::isfinite(share) ? fmt::format("{:.1f} %", share) : "unknown";
}

std::string partTable(const PageBars &bars, const BarsLook &look) {
  const PageBar &bar = bars.bars.front();
  HtmlTable table(look.title);
  table.column("part");
  table.number(look.unit.text == secondsText ? "time" : "size");
  table.number("share");
  if (std::ranges::any_of(bars.parts, [](const PagePart &part) {
        return !part.meaning.empty();
      }))
    table.column("what it is");
  for (std::size_t part = 0; part < bars.parts.size(); ++part) {
    double value = part < bar.parts.size() ? bar.parts[part] : 0.0;
    table.row({bars.parts[part].name, look.unit.text(value),
               shareText(value, totalOf(bar)), bars.parts[part].meaning});
  }
  table.row({"all", look.unit.text(totalOf(bar)), shareText(1, 1), ""});
  if (std::isfinite(bars.limit))
    table.row({look.limitName, look.unit.text(bars.limit), "", ""});
  return table.fold();
}

} // namespace

bool isEmpty(const PageBars &bars) {
  return bars.bars.empty() || bars.parts.empty();
}

std::string legend(const std::vector<std::pair<int, std::string>> &entries) {
  std::string text = "<ul class=\"legend\">";
  for (const auto &[colour, name] : entries)
    text +=
        fmt::format("<li><svg viewBox=\"0 0 12 12\" aria-hidden=\"true\"><rect "
                    "class=\"c{}\" width=\"12\" height=\"12\"/></svg>{}</li>",
                    colour, escaped(name, 80));
  return text + "</ul>\n";
}

std::string barsFigure(const PageBars &bars, const BarsLook &look) {
  std::vector<std::pair<int, std::string>> entries;
  for (std::size_t part = 0; part < bars.parts.size(); ++part)
    for (const PageBar &bar : bars.bars)
      if (partOf(bar, part) > 0) {
        entries.emplace_back(colourOf(bars, part), bars.parts[part].name);
        break;
      }
  std::string text = "<figure>\n" + legend(entries);
  text += Drawing(bars, look).print();
  std::string words;
  if (std::isfinite(bars.limit) && bars.limit > 0)
    words = fmt::format("The dashed line is the limit: {}, {}. ",
                        escaped(look.limitName), look.unit.text(bars.limit));
  if (bars.bars.size() > kMostBars)
    words += fmt::format(
        "{} of {} bars are drawn, evenly chosen; the table has the others.",
        kMostBars, bars.bars.size());
  if (!words.empty())
    text += "<figcaption>" + words + "</figcaption>\n";
  return text + "</figure>\n";
}

std::string barsTable(const PageBars &bars, const BarsLook &look) {
  if (bars.bars.size() == 1 && bars.noteName.empty())
    return partTable(bars, look);
  bool hasNotes = !bars.noteName.empty();
  bool isLimited = std::isfinite(bars.limit) && bars.limit > 0;
  HtmlTable table(look.title);
  table.column(look.barColumn);
  for (const PagePart &part : bars.parts)
    table.number(part.name);
  if (look.hasTotals)
    table.number("all");
  if (isLimited)
    table.number("of " + look.unit.text(bars.limit));
  if (hasNotes)
    table.number(bars.noteName);
  for (const PageBar &bar : bars.bars) {
    std::vector<std::string> row = {bar.name};
    for (std::size_t part = 0; part < bars.parts.size(); ++part)
      row.push_back(
          look.unit.text(part < bar.parts.size() ? bar.parts[part] : 0.0));
    if (look.hasTotals)
      row.push_back(look.unit.text(totalOf(bar)));
    if (isLimited)
      row.push_back(shareText(totalOf(bar), bars.limit));
    if (hasNotes)
      row.push_back(bar.note);
    table.row(std::move(row));
  }
  std::string terms;
  for (const PagePart &part : bars.parts)
    if (!part.meaning.empty())
      terms += "<dt>" + escaped(part.name, 80) + "</dt><dd>" +
               escaped(part.meaning, 400) + "</dd>";
  return table.fold() +
         (terms.empty() ? "" : "<dl class=\"terms\">" + terms + "</dl>\n");
}

} // namespace mtplan::tools
