//===- bars.h - Stacked bars, their legend and their table ------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_PAGE_BARS_H
#define MTPLAN_TOOLS_PAGE_BARS_H

#include <string>
#include <utility>
#include <vector>

#include "tools/page/page.h"
#include "tools/page/scale.h"

namespace mtplan::tools {

/// How a set of bars is called: `title` is its text alternative and caption.
struct BarsLook {
  std::string title;
  std::string barColumn; ///< what a bar is: "stage"
  std::string limitName; ///< "memory of one GPU"
  const AxisUnit &unit;
  bool hasTotals = true; ///< beside the bars and in the table
};

/// Whether there is anything to draw.
bool isEmpty(const PageBars &bars);

/// The total as told, or the sum of the parts that are known.
double totalOf(const PageBar &bar);

/// At most so many bars are drawn, evenly chosen.
inline constexpr int kMostBars = 64;

/// A figure: legend, drawing, and a sentence if not all bars are drawn.
std::string barsFigure(const PageBars &bars, const BarsLook &look);

/// A row a bar, a column a part; or, with one bar, a row a part with its share
/// and meaning.
std::string barsTable(const PageBars &bars, const BarsLook &look);

/// Swatches with names. `colours` are indices below kPageColours.
std::string legend(const std::vector<std::pair<int, std::string>> &entries);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_PAGE_BARS_H
