//===- parameter_lines.h - Parameters one by one, as lines ------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_PARAMETER_LINES_H
#define MTPLAN_CODEGEN_SOURCE_PARAMETER_LINES_H

#include "codegen/source/stage_names.h"
#include "codegen/source/text.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// Writes initialise(), which sets a stage's weights and their masters.
void writeInitialise(const runtime::Plan &plan, const runtime::Stage &stage,
                     const StageNames &names, Text &to);

/// Writes squares(), which adds up the terms of the gradient norm, and the
/// functions that list them. One launch adds up all gradients that it computes
/// in one type.
void writeSquares(const runtime::Plan &plan, const runtime::Stage &stage,
                  const StageNames &names, Text &to);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_PARAMETER_LINES_H
