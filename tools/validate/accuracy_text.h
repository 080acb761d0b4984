//===- accuracy_text.h - Reports of the comparison --------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_VALIDATE_ACCURACY_TEXT_H
#define MTPLAN_TOOLS_VALIDATE_ACCURACY_TEXT_H

#include "tools/validate/statistics.h"

namespace mtplan::tools {

/// Returns a table for the screen: all rows, then sources and ranks.
std::string accuracyText(const std::vector<PricedRow> &rows);

/// Returns a page of Markdown: sources, ranks, the worst rows and the excluded
/// rows.
/// \param csv, svg  names of files in the page's folder; svg may be empty
std::string accuracyMarkdown(const std::vector<PricedRow> &rows,
                             const std::string &csv, const std::string &svg);

/// Returns JSON in the style of docs/json-output.md: rows, sources, groups,
/// overall.
std::string accuracyJson(const std::vector<PricedRow> &rows);

/// Draws predicted against measured times, on logarithmic axes, with a colour
/// per source.
std::string accuracySvg(const std::vector<PricedRow> &rows);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_VALIDATE_ACCURACY_TEXT_H
