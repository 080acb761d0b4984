//===- bars.h - Stacked bars, their legend and their table ------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_REPORT_PAGE_BARS_H
#define MTPLAN_TOOLS_REPORT_PAGE_BARS_H

#include <string>
#include <utility>
#include <vector>

#include "tools/report/page/html.h"
#include "tools/report/page/page.h"

namespace mtplan::tools {

/// Describes the appearance of bars. `title` is the caption and the text
/// alternative.
struct BarsLook {
  std::string title;
  std::string barColumn; ///< heading of the names: "stage"
  std::string limitName;
  const AxisUnit &unit;
  bool hasTotals = true; ///< show totals beside the bars and in the table
};

bool isEmpty(const PageBars &bars);

/// Returns a legend, a drawing, and a caption. The caption states the limit, if
/// there is one, and the number of drawn bars if some are left out.
std::string barsFigure(const PageBars &bars, const BarsLook &look);

/// Returns a table with a row per bar and a column per part. For a single bar,
/// the table has a row per part with share and meaning.
std::string barsTable(const PageBars &bars, const BarsLook &look);

/// Returns colour swatches with names. Colours are indices below kPageColours.
std::string legend(const std::vector<std::pair<int, std::string>> &entries);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_PAGE_BARS_H
