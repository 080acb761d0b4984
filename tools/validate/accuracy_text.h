//===- accuracy_text.h - Reports of the comparison --------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_VALIDATE_ACCURACY_TEXT_H
#define MTPLAN_TOOLS_VALIDATE_ACCURACY_TEXT_H

#include "tools/validate/statistics.h"

namespace mtplan::tools {

/// Returns tables for the screen: all rows, the errors by source, and the rank
/// correlations.
std::string accuracyText(const std::vector<PricedRow> &rows);

/// Returns a page of Markdown: the errors by source, rank correlations, weak
/// scaling, the worst rows and the rows without a price.
/// \param csv, svg  names of files in the page's folder; svg may be empty
std::string accuracyMarkdown(const std::vector<PricedRow> &rows,
                             const std::string &csv, const std::string &svg);

/// Returns JSON in the style of docs/json-output.md: the rows, the errors
/// overall and by source, and the rank correlations.
std::string accuracyJson(const std::vector<PricedRow> &rows);

/// Draws predicted against measured times, on logarithmic axes, with a colour
/// per source.
std::string accuracySvg(const std::vector<PricedRow> &rows);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_VALIDATE_ACCURACY_TEXT_H
