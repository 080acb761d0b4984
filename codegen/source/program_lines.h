//===- program_lines.h - A program of a stage as a function -----*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_PROGRAM_LINES_H
#define MTPLAN_CODEGEN_SOURCE_PROGRAM_LINES_H

#include <cstddef>
#include <set>
#include <string>

#include "codegen/source/kernel_lines.h"
#include "codegen/source/shared_functions.h"
#include "codegen/source/stage_names.h"
#include "codegen/source/stage_source.h"
#include "codegen/source/update_lines.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

struct StageContext {
  const runtime::Plan &plan;
  std::size_t stage;
  const StageNames &names;
  const SharedNames &shared;
  const UpdateLines &updates;
};

/// Writes the comment and the body of a program's function.
/// \param needs  receives the declarations that the function needs
/// \param overlapped  receives the streams that join the first stream when the
/// schedule ends
/// \throws SourceError if an instruction cannot be written
void writeProgram(const StageContext &context, int program,
                  StageFunction &function, Needs &needs,
                  std::set<std::string> &overlapped);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_PROGRAM_LINES_H
