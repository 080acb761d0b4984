//===- accuracy_text.h - What the comparison shows, to read -----*- C++ -*-===//

#ifndef MTPLAN_TOOLS_VALIDATE_ACCURACY_TEXT_H
#define MTPLAN_TOOLS_VALIDATE_ACCURACY_TEXT_H

#include "tools/validate/statistics.h"

namespace mtplan::tools {

/// For a screen: every row, then sources and ranks.
std::string accuracyText(const std::vector<PricedRow> &rows);

/// A page of Markdown: sources, ranks, what is worst, what is left out.
/// \param csv, svg  names of the files beside it; svg may be empty
std::string accuracyMarkdown(const std::vector<PricedRow> &rows,
                             const std::string &csv, const std::string &svg);

/// docs/json-output.md style: rows, sources, groups, overall.
std::string accuracyJson(const std::vector<PricedRow> &rows);

/// Predicted against measured, both axes logarithmic, a colour per source.
std::string accuracySvg(const std::vector<PricedRow> &rows);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_VALIDATE_ACCURACY_TEXT_H
