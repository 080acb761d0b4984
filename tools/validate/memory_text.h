//===- memory_text.h - Reports of predicted memory --------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_VALIDATE_MEMORY_TEXT_H
#define MTPLAN_TOOLS_VALIDATE_MEMORY_TEXT_H

#include "tools/validate/statistics.h"

namespace mtplan::tools {

/// Returns tables of all rows, and of the errors by source and kind of memory.
std::string memoryText(const std::vector<PricedRow> &rows);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_VALIDATE_MEMORY_TEXT_H
