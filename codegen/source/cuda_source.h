//===- cuda_source.h - A plan as a program that stands alone ----*- C++ -*-===//
//
// The training step of an executable plan in CUDA, cuBLASLt and NCCL, with the
// plan's names, as an engineer would write it. Nothing is decided here: the
// program does what the plan says.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_CODEGEN_SOURCE_CUDA_SOURCE_H
#define MTPLAN_CODEGEN_SOURCE_CUDA_SOURCE_H

#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// A plan cannot be written as a program. what() starts with the label.
struct SourceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One file of a program.
struct ProgramFile {
  std::string path; ///< "kernels/norm.cuh", within the program's folder
  std::string text;
};

/// Returns the program's files: train.cu, which is the step; dimensions.h,
/// memory.cuh and parameters.cuh, which are of the plan; the runtime's kernels
/// and helpers; CMakeLists.txt. The same plan gives the same bytes.
/// \param plan  that checkPlan finds nothing wrong with
/// \throws SourceError if the plan has something that cannot be written
std::vector<ProgramFile> cudaProgram(const runtime::Plan &plan);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_CUDA_SOURCE_H
