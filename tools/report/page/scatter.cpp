//===- scatter.cpp - Plans by step time and memory ------------------------===//

#include "tools/report/page/scatter.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tools/report/page/html_table.h"
#include "tools/report/page/html_text.h"
#include "tools/report/page/scale.h"

namespace mtplan::tools {

namespace {

constexpr double kLeft = 110, kRight = 970, kTop = 16, kBottom = 330;
constexpr std::size_t kMostPoints = 200;

struct Range {
  double low = 0, high = 0;

  /// Returns the range of the values, with a margin; never empty.
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

class Drawing {
public:
  explicit Drawing(const Page &thePage) : page(thePage) {
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
    text = fmt::format(
        "<div class=\"wide\"><svg class=\"chart\" viewBox=\"0 0 1000 380\" "
        "role=\"img\" aria-label=\"Step time against memory of {} plans; the "
        "chosen one is the star\">\n",
        page.alternatives.size());
    axes();
    std::size_t count = 0;
    for (const PageAlternative &plan : page.alternatives)
      if (!plan.isChosen && count++ < kMostPoints)
        point(plan);
    // The chosen plan is drawn last, on top.
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
      text += fmt::format(
          "<path class=\"limit\" d=\"M{} {}H{}\"><title>memory of one device: "
          "{}</title></path>\n",
          coordinate(kLeft), coordinate(y(page.memoryLimit)),
          coordinate(kRight), bytesAsText(page.memoryLimit));
    text += fmt::format(
        "<text class=\"mid\" x=\"{}\" y=\"{}\">step time</text>\n"
        "<text class=\"mid\" transform=\"translate(16 {}) rotate(-90)\">"
        "memory of the fullest device</text>\n",
        coordinate((kLeft + kRight) / 2), coordinate(kBottom + 38),
        coordinate((kTop + kBottom) / 2));
  }

  void point(const PageAlternative &plan) {
    if (!std::isfinite(plan.seconds) || !std::isfinite(plan.bytes))
      return;
    std::string where =
        fmt::format("translate({} {})", coordinate(x(plan.seconds)),
                    coordinate(y(plan.bytes)));
    text += plan.isChosen
                ? fmt::format("<path class=\"chosen\" transform=\"{}\" d=\"M0 "
                              "-11L2.6 -3.6L10.5 -3.4L4.2 1.4L6.5 8.9L0 "
                              "4.4L-6.5 8.9L-4.2 1.4L-10.5 -3.4L-2.6 -3.6z\">",
                              where)
                : fmt::format("<circle class=\"point\" transform=\"{}\" "
                              "r=\"5.5\">",
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

} // namespace

std::string scatterFigure(const Page &page) {
  std::string text =
      "<figure>\n<ul class=\"legend\"><li><svg viewBox=\"-12 -12 24 24\" "
      "aria-hidden=\"true\"><path class=\"chosen\" d=\"M0 -11L2.6 -3.6L10.5 "
      "-3.4L4.2 1.4L6.5 8.9L0 4.4L-6.5 8.9L-4.2 1.4L-10.5 -3.4L-2.6 -3.6z\"/>"
      "</svg>the chosen plan</li><li><svg viewBox=\"-7 -7 14 14\" "
      "aria-hidden=\"true\"><circle class=\"point\" r=\"5.5\"/></svg>another "
      "plan: point at it to see why it lost</li></ul>\n";
  text += Drawing(page).print() + "<figcaption>Left and low is good. The axes "
                                  "do not start at zero.";
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

} // namespace mtplan::tools
