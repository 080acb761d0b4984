//===- page_html.cpp - The page, section by section -----------------------===//

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "tools/report/page/bars.h"
#include "tools/report/page/html.h"
#include "tools/report/page/page.h"
#include "tools/report/page/timeline.h"

namespace mtplan::tools {

namespace {

constexpr std::size_t kMostNotes = 50;

std::string paragraph(const char *name, const std::string &text) {
  return text.empty()
             ? ""
             : fmt::format("<p class=\"{}\">{}</p>\n", name, escaped(text));
}

std::string headOf(const Page &page) {
  // The policy allows only inline styles and scripts, so nothing is fetched.
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta "
         "charset=\"utf-8\"/>\n<meta http-equiv=\"Content-Security-Policy\" "
         "content=\"default-src 'none'; style-src 'unsafe-inline'; script-src "
         "'unsafe-inline'\"/>\n<meta name=\"viewport\" "
         "content=\"width=device-width, initial-scale=1\"/>\n<title>" +
         escaped(page.title, 200) + "</title>\n<style>" + kPageStyle +
         "</style>\n</head>\n";
}

std::string heading(const Page &page) {
  std::string text = "<header>\n<h1>" + escaped(page.title, 200) + "</h1>\n" +
                     paragraph("soft", page.model) +
                     paragraph("soft", page.machine) +
                     paragraph("plan", page.plan);
  if (!page.figures.empty()) {
    text += "<dl class=\"figures\">\n";
    for (const PageFigure &figure : page.figures)
      text += "<div><dt>" + escaped(figure.name, 80) + "</dt><dd>" +
              escaped(figure.value, 80) + "</dd></div>\n";
    text += "</dl>\n";
  }
  for (std::size_t i = 0; i < page.notes.size() && i < kMostNotes; ++i)
    text += "<p><strong>Note:</strong> " + escaped(page.notes[i]) + "</p>\n";
  if (page.notes.size() > kMostNotes)
    text += fmt::format("<p>and {} more notes</p>\n",
                        page.notes.size() - kMostNotes);
  return text + "</header>\n";
}

std::string section(const char *id, const std::string &title,
                    const std::string &body) {
  return fmt::format(
             "<section aria-labelledby=\"{0}\">\n<h2 id=\"{0}\">{1}</h2>\n", id,
             escaped(title, 200)) +
         body + "</section>\n";
}

std::string barsSection(const PageBars &bars, const BarsLook &look) {
  return isEmpty(bars) ? "" : barsFigure(bars, look) + barsTable(bars, look);
}

std::string timeSection(const Page &page) {
  if (isEmpty(page.step) && isEmpty(page.stages))
    return "";
  std::string body =
      barsSection(page.step, {"The step", "what", "", kSecondsUnit});
  if (!isEmpty(page.stages))
    body += "<h3>By stage</h3>\n" +
            barsSection(page.stages,
                        {"The step, by stage", "stage", "", kSecondsUnit});
  return section("time", "Where the time goes", body);
}

// Returns a bar per axis and phase, with a part per kind of collective.
PageBars barsOf(const std::vector<PageTraffic> &traffic,
                double PageTraffic::*amount) {
  PageBars bars;
  for (const PageTraffic &one : traffic) {
    std::string name = one.axis + ", " + one.phase;
    auto bar = std::ranges::find(bars.bars, name, &PageBar::name);
    if (bar == bars.bars.end()) {
      bars.bars.push_back({name, {}, kUnknown, {}});
      bar = bars.bars.end() - 1;
    }
    auto part = std::ranges::find(bars.parts, one.kind, &PagePart::name);
    if (part == bars.parts.end()) {
      bars.parts.push_back({one.kind, {}});
      part = bars.parts.end() - 1;
    }
    auto index = static_cast<std::size_t>(part - bars.parts.begin());
    bar->parts.resize(std::max(bar->parts.size(), index + 1), 0.0);
    bar->parts[index] += drawable(one.*amount);
  }
  return bars;
}

std::string trafficSection(const std::vector<PageTraffic> &traffic) {
  if (traffic.empty())
    return "<p>Nothing is communicated.</p>\n";
  HtmlTable table("Communication of a step");
  table.column("axis");
  table.column("phase");
  table.column("collective");
  table.number("times a step");
  table.number("bytes");
  table.number("time");
  for (const PageTraffic &one : traffic)
    table.row({one.axis, one.phase, one.kind, std::to_string(one.count),
               bytesAsText(one.bytes), secondsText(one.seconds)});
  return "<p class=\"soft\">Per step, of one rank of every stage, added "
         "up.</p>\n"
         "<h3>Bytes passed in</h3>\n" +
         barsFigure(barsOf(traffic, &PageTraffic::bytes),
                    {"Bytes communicated, by axis and phase", "axis and phase",
                     "", kBytesUnit}) +
         "<h3>Time, whether or not something runs meanwhile</h3>\n" +
         barsFigure(barsOf(traffic, &PageTraffic::seconds),
                    {"Time of communication, by axis and phase",
                     "axis and phase", "", kSecondsUnit}) +
         table.fold();
}

constexpr double kLeft = 110, kRight = 970, kTop = 16, kBottom = 330;
constexpr std::size_t kMostPoints = 200;

struct Range {
  double low = 0, high = 0;

  /// Adds a margin to the range of the values. The result is never empty.
  static Range of(std::vector<double> values) {
    std::erase_if(values, [](double value) { return !std::isfinite(value); });
    if (values.empty())
      return {0, 1};
    auto [low, high] = std::ranges::minmax(values);
    double room = 0.08 * (high - low);
    if (!(room > 1e-9 * std::abs(high)))
      room = std::max(0.1 * std::abs(high), 1e-9);
    return {std::max(0.0, low - room), high + room};
  }
  double share(double value) const { return (value - low) / (high - low); }
};

class Scatter {
public:
  explicit Scatter(const Page &thePage) : page(thePage) {
    std::vector<double> times, sizes;
    for (const PageAlternative &plan : page.alternatives) {
      times.push_back(plan.seconds);
      sizes.push_back(plan.bytes);
    }
    sizes.push_back(page.memoryLimit);
    across = Range::of(times);
    up = Range::of(sizes);
  }

  std::string print() {
    text = fmt::format("<div class=\"wide\"><svg class=\"chart\" viewBox=\"0 0 "
                       "1000 380\" role=\"img\" aria-label=\"Step time against "
                       "memory of {} plans; the chosen one is the star\">\n",
                       page.alternatives.size());
    axes();
    front();
    std::size_t count = 0;
    for (const PageAlternative &plan : page.alternatives)
      if (!plan.isChosen && count++ < kMostPoints)
        point(plan);
    for (const PageAlternative &plan : page.alternatives)
      if (plan.isChosen)
        point(plan);
    return text + "</svg></div>\n";
  }

private:
  double x(double seconds) const {
    return kLeft + across.share(seconds) * (kRight - kLeft);
  }
  double y(double bytes) const {
    return kBottom - up.share(bytes) * (kBottom - kTop);
  }

  void axes() {
    for (double tick : ticksOf(across.low, across.high, kSecondsUnit))
      text += fmt::format("<path class=\"grid\" d=\"M{0} {1}V{2}\"/><text "
                          "class=\"mid\" x=\"{0}\" y=\"{3}\">{4}</text>\n",
                          coordinate(x(tick)), coordinate(kTop),
                          coordinate(kBottom), coordinate(kBottom + 16),
                          secondsText(tick));
    for (double tick : ticksOf(up.low, up.high, kBytesUnit))
      text += fmt::format("<path class=\"grid\" d=\"M{} {}H{}\"/><text "
                          "class=\"end\" x=\"{}\" y=\"{}\">{}</text>\n",
                          coordinate(kLeft), coordinate(y(tick)),
                          coordinate(kRight), coordinate(kLeft - 6),
                          coordinate(y(tick) + 4), bytesAsText(tick));
    if (std::isfinite(page.memoryLimit))
      text += fmt::format("<path class=\"limit\" d=\"M{} {}H{}\"><title>memory "
                          "of one device: {}</title></path>\n",
                          coordinate(kLeft), coordinate(y(page.memoryLimit)),
                          coordinate(kRight), bytesAsText(page.memoryLimit));
    text += fmt::format(
        "<text class=\"mid\" x=\"{}\" y=\"{}\">step time</text>\n"
        "<text class=\"mid\" transform=\"translate(16 {}) rotate(-90)\">"
        "memory of the fullest device</text>\n",
        coordinate((kLeft + kRight) / 2), coordinate(kBottom + 38),
        coordinate((kTop + kBottom) / 2));
  }

  // Draws a line through the Pareto front of time and memory.
  void front() {
    std::vector<std::pair<double, double>> plans;
    for (const PageAlternative &plan : page.alternatives)
      if (std::isfinite(plan.seconds) && std::isfinite(plan.bytes))
        plans.emplace_back(plan.seconds, plan.bytes);
    std::ranges::sort(plans);
    std::string path;
    double least = std::numeric_limits<double>::infinity();
    for (const auto &[seconds, bytes] : plans)
      if (bytes < least) {
        least = bytes;
        path += fmt::format("{}{} {}", path.empty() ? 'M' : 'L',
                            coordinate(x(seconds)), coordinate(y(bytes)));
      }
    if (!path.empty())
      text += "<path class=\"front\" d=\"" + path +
              "\"><title>the Pareto front of the plans found</title></path>\n";
  }

  void point(const PageAlternative &plan) {
    if (!std::isfinite(plan.seconds) || !std::isfinite(plan.bytes))
      return;
    std::string where =
        fmt::format("translate({} {})", coordinate(x(plan.seconds)),
                    coordinate(y(plan.bytes)));
    text +=
        plan.isChosen
            ? fmt::format("<path class=\"chosen\" transform=\"{}\" d=\"M0 "
                          "-11L2.6 -3.6L10.5 -3.4L4.2 1.4L6.5 8.9L0 4.4L-6.5 "
                          "8.9L-4.2 1.4L-10.5 -3.4L-2.6 -3.6z\">",
                          where)
            : fmt::format("<circle class=\"point\" transform=\"{}\" r=\"5.5\">",
                          where);
    std::string title =
        fmt::format("{}{}: {}, {}", plan.isChosen ? "chosen: " : "",
                    escaped(plan.name, 120), secondsText(plan.seconds),
                    bytesAsText(plan.bytes));
    for (const std::string *more : {&plan.slowdown, &plan.reason})
      if (!more->empty())
        title += "; " + escaped(*more, 200);
    text += "<title>" + title + "</title>";
    text += plan.isChosen ? "</path>\n" : "</circle>\n";
  }

  const Page &page;
  Range across, up;
  std::string text;
};

std::string scatterFigure(const Page &page) {
  std::string text =
      "<figure>\n<ul class=\"legend\"><li><svg viewBox=\"-12 -12 24 24\" "
      "aria-hidden=\"true\"><path class=\"chosen\" d=\"M0 -11L2.6 -3.6L10.5 "
      "-3.4L4.2 1.4L6.5 8.9L0 4.4L-6.5 8.9L-4.2 1.4L-10.5 -3.4L-2.6 "
      "-3.6z\"/></svg>the chosen plan</li><li><svg viewBox=\"-7 -7 14 14\" "
      "aria-hidden=\"true\"><circle class=\"point\" r=\"5.5\"/></svg>another "
      "plan: point at it to see why it lost</li></ul>\n";
  text += Scatter(page).print() +
          "<figcaption>Left and low is good. The line is the Pareto front "
          "of the plans found. The axes do not start at zero.";
  if (std::isfinite(page.memoryLimit))
    text += " The dashed line is the memory of one device, " +
            bytesAsText(page.memoryLimit) + ".";
  if (page.alternatives.size() > kMostPoints + 1)
    text += fmt::format(" The first {} of {} plans are drawn.", kMostPoints,
                        page.alternatives.size());
  return text + "</figcaption>\n</figure>\n";
}

std::string alternativeTables(const Page &page) {
  std::string text;
  if (!page.alternatives.empty()) {
    HtmlTable table("Plans");
    table.column("plan");
    table.number("step time");
    table.number("memory");
    table.number("against the chosen");
    table.column("why it lost");
    for (const PageAlternative &plan : page.alternatives)
      table.row({plan.name, secondsText(plan.seconds), bytesAsText(plan.bytes),
                 plan.isChosen ? "chosen" : plan.slowdown, plan.reason});
    text += table.fold();
  }
  if (!page.rejections.empty()) {
    HtmlTable table("What never became a plan");
    table.column("devices shared out as");
    table.column("why not");
    for (const PageRejection &rejection : page.rejections)
      table.row({rejection.name, rejection.reason});
    text += table.fold();
  }
  return text;
}

std::string alternativesSection(const Page &page) {
  std::string body = paragraph("soft", page.searched);
  bool hasOthers = false;
  for (const PageAlternative &plan : page.alternatives)
    hasOthers |= !plan.isChosen;
  if (hasOthers)
    body += scatterFigure(page);
  else
    body += "<p>There is no other plan to compare with.</p>\n";
  return section("alternatives", "Alternatives",
                 body + alternativeTables(page));
}

std::string tableSection(const PageTable &content, std::size_t number) {
  HtmlTable table(content.title);
  for (const std::string &column : content.columns)
    table.column(column);
  for (const std::vector<std::string> &row : content.rows)
    table.row(row);
  return section(fmt::format("table{}", number).c_str(), content.title,
                 paragraph("soft", content.text) + table.fold());
}

} // namespace

std::string htmlOf(const Page &page) {
  std::string text = headOf(page) + "<body>\n" + heading(page) + "<main>\n";
  text += timeSection(page);
  if (page.timeline.stages > 0)
    text +=
        section("timeline", "Timeline",
                timelineFigure(page.timeline) + timelineTables(page.timeline));
  if (!isEmpty(page.memory))
    text +=
        section("memory", "Memory",
                barsSection(page.memory, {"Memory of one device", "stage",
                                          "memory of one device", kBytesUnit}));
  text +=
      section("communication", "Communication", trafficSection(page.traffic));
  text += alternativesSection(page);
  for (std::size_t i = 0; i < page.tables.size(); ++i)
    text += tableSection(page.tables[i], i);
  text += "</main>\n";
  if (!page.made.empty())
    text += "<footer>" + paragraph("soft", page.made) + "</footer>\n";
  return text + "<script>" + kPageScript + "</script>\n</body>\n</html>\n";
}

} // namespace mtplan::tools
