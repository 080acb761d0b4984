//===- traffic.cpp - Communication by axis and phase ----------------------===//

#include "tools/report/page/traffic.h"

#include <algorithm>

#include "tools/report/page/bars.h"
#include "tools/report/page/html_table.h"
#include "tools/report/page/html_text.h"

namespace mtplan::tools {

namespace {

// Returns a bar per axis and phase and a part per kind, in order of appearance.
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

} // namespace

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

} // namespace mtplan::tools
