//===- cuda_source.h - A plan as a program that stands alone ----*- C++ -*-===//
//
// CUDA, cuBLASLt and NCCL: the training step of an executable plan, with the
// plan's names, as an engineer would write it. Nothing is decided here: what
// the plan says is what is written.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_CODEGEN_SOURCE_CUDA_SOURCE_H
#define MTPLAN_CODEGEN_SOURCE_CUDA_SOURCE_H

#include <stdexcept>
#include <string>

#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// A plan that cannot be written so. what() starts with the label.
struct SourceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// train.cu. The same plan gives the same bytes.
/// \param plan  that checkPlan finds nothing wrong with
/// \throws SourceError
std::string cudaSource(const runtime::Plan &plan);

/// Its CMakeLists.txt.
std::string cudaProject(const runtime::Plan &plan);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_CUDA_SOURCE_H
