//===- scatter.h - Plans by step time and memory ----------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_PAGE_SCATTER_H
#define MTPLAN_TOOLS_PAGE_SCATTER_H

#include <string>

#include "tools/page/page.h"

namespace mtplan::tools {

/// The chosen plan, the others, the limit of memory. Left and low is good.
std::string scatterFigure(const Page &page);

/// The same as a table, and what never became a plan as another.
std::string alternativeTables(const Page &page);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_PAGE_SCATTER_H
