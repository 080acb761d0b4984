//===- bars.h - Stacked bars, their legend and their table ------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_REPORT_PAGE_BARS_H
#define MTPLAN_TOOLS_REPORT_PAGE_BARS_H

#include <string>
#include <utility>
#include <vector>

#include "tools/report/page/html.h"
#include "tools/report/page/page.h"

namespace mtplan::tools {

/// Describes the appearance of a set of bars. `title` is its text alternative
/// and caption.
struct BarsLook {
  std::string title;
  std::string barColumn; ///< heading of the bars' names: "stage"
  std::string limitName; ///< "memory of one GPU"
  const AxisUnit &unit;
  bool hasTotals = true; ///< show totals beside the bars and in the table
};

/// Returns whether there is nothing to draw.
bool isEmpty(const PageBars &bars);

/// Returns a figure: legend, drawing, and a caption with the limit, if there is
/// one, and the number of drawn bars, if not all are drawn.
std::string barsFigure(const PageBars &bars, const BarsLook &look);

/// Returns a table: a row per bar and a column per part; for a single bar, a
/// row per part with its share and meaning.
std::string barsTable(const PageBars &bars, const BarsLook &look);

/// Returns colour swatches with names. Colours are indices below kPageColours.
std::string legend(const std::vector<std::pair<int, std::string>> &entries);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_PAGE_BARS_H
