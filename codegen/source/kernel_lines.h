//===- kernel_lines.h - Kernels as lines of a program -----------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_KERNEL_LINES_H
#define MTPLAN_CODEGEN_SOURCE_KERNEL_LINES_H

#include <set>
#include <string>

#include "codegen/source/stage_names.h"
#include "codegen/source/text.h"

namespace mtplan::codegen {

/// Writes the call of an instruction's kernel.
/// \param needed  to which the files are added that have it
/// \throws SourceError if there is no way to write it
void writeKernel(const runtime::Instruction &instruction,
                 const runtime::Program &program, const StageNames &names,
                 Text &text, std::set<std::string> &needed);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_KERNEL_LINES_H
