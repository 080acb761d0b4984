//===- kernel_lines.h - Kernels as lines of a program -----------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_KERNEL_LINES_H
#define MTPLAN_CODEGEN_SOURCE_KERNEL_LINES_H

#include <set>
#include <string>
#include <vector>

#include "codegen/source/stage_names.h"
#include "codegen/source/text.h"
#include "runtime/backend/matrix_shape.h"

namespace mtplan::codegen {

/// What calls of kernels want of the rest of a program.
struct Needs {
  std::set<std::string> files;                ///< of the runtime
  std::vector<runtime::MatrixShape> products; ///< each once
};

/// Writes the call of an instruction's kernel.
/// \param needs  to which is added what it wants
/// \throws SourceError if there is no way to write it
void writeKernel(const runtime::Instruction &instruction,
                 const runtime::Program &program, const StageNames &names,
                 Text &text, Needs &needs);

/// Writes lines that have algorithms chosen for its products.
void writeChoices(const Needs &needs, Text &text);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_KERNEL_LINES_H
