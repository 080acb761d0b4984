//===- parameter_lines.h - Parameters one by one, as lines ------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_PARAMETER_LINES_H
#define MTPLAN_CODEGEN_SOURCE_PARAMETER_LINES_H

#include "codegen/source/stage_names.h"
#include "codegen/source/text.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// Writes initialise(), which sets the weights and master weights of a stage.
void writeInitialise(const runtime::Stage &stage, const StageNames &names,
                     Text &to);

/// Writes squares(), which sums the squares of a stage's gradients for the
/// norm, and the functions that list the gradients. One launch sums all f64
/// gradients, and another one sums all other gradients.
void writeSquares(const runtime::Plan &plan, const runtime::Stage &stage,
                  const StageNames &names, Text &to);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_PARAMETER_LINES_H
