//===- memory_lines.h - A stage's memory, as lines --------------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_MEMORY_LINES_H
#define MTPLAN_CODEGEN_SOURCE_MEMORY_LINES_H

#include <set>
#include <string>
#include <vector>

#include "codegen/source/kernel_lines.h"
#include "codegen/source/stage_names.h"
#include "codegen/source/text.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// Returns the names of the buffers that `text` mentions as "buf::name".
std::set<std::string> buffersIn(const Text &text);

/// Writes the struct `buf` of a stage: constants, tables, and the buffers that
/// `readers` or the tables mention.
void writeBuffers(const runtime::Stage &stage, const StageNames &names,
                  const std::vector<const Text *> &readers, const Text &tables,
                  Text &to);

/// Writes open(), which allocates a rank's memory and lets cuBLASLt choose the
/// algorithms of the stage's products.
void writeOpen(const runtime::Stage &stage, const Needs &needs, Text &to);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_MEMORY_LINES_H
