//===- program_head.h - The comment at the head of train.cu -----*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_PROGRAM_HEAD_H
#define MTPLAN_CODEGEN_SOURCE_PROGRAM_HEAD_H

#include <string>
#include <vector>

#include "codegen/source/program_headers.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// Returns the comment: the plan, the order of a step, the terms of the program
/// and the files beside it. A term is explained only if the program contains
/// it.
/// \param step  train.cu without the comment
std::string programHead(const runtime::Plan &plan,
                        const std::vector<ProgramHeader> &headers,
                        const std::string &step);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_PROGRAM_HEAD_H
