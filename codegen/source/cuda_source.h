//===- cuda_source.h - A plan as a program that stands alone ----*- C++ -*-===//
//
// Writes the training step of an executable plan as a program in CUDA, cuBLASLt
// and NCCL. The program is for an engineer to read. It uses the plan's names
// and executes the plan exactly. The writer makes no decision of its own.
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_CODEGEN_SOURCE_CUDA_SOURCE_H
#define MTPLAN_CODEGEN_SOURCE_CUDA_SOURCE_H

#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// Reports that a plan cannot be written as a program. what() starts with the
/// label of the instruction if a single instruction is at fault.
struct SourceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct ProgramFile {
  std::string path; ///< "kernels/norm.cuh", within the program's folder
  std::string text;
};

/// Returns the files of the program: the step (train.cu), the plan's sizes and
/// memory (dimensions.h, memory.cuh, parameters.cuh), the runtime's kernels and
/// helpers, and CMakeLists.txt. The same plan yields the same bytes.
/// \param plan  a plan in which checkPlan() finds no fault
/// \throws SourceError if a part of the plan cannot be written
std::vector<ProgramFile> cudaProgram(const runtime::Plan &plan);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_CUDA_SOURCE_H
