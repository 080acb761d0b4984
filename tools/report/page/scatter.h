//===- scatter.h - Plans by step time and memory ----------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_REPORT_PAGE_SCATTER_H
#define MTPLAN_TOOLS_REPORT_PAGE_SCATTER_H

#include <string>

#include "tools/report/page/page.h"

namespace mtplan::tools {

/// Draws the chosen plan, the alternatives and the memory limit. Lower left is
/// better.
std::string scatterFigure(const Page &page);

/// Returns the same as a table, and the rejections as another.
std::string alternativeTables(const Page &page);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_PAGE_SCATTER_H
