//===- stage_names.h - How a program speaks of a stage's tensors *- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_STAGE_NAMES_H
#define MTPLAN_CODEGEN_SOURCE_STAGE_NAMES_H

#include <string>
#include <vector>

#include "runtime/backend/tensor_view.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

class StageNames {
public:
  StageNames(const runtime::Plan &thePlan, const runtime::Stage &theStage);

  /// "now.f32(buf::h_ln_1, now.layer)"
  std::string tensor(const runtime::Tensor &tensor) const;
  /// The same as a pointer to i32.
  std::string integers(const runtime::Tensor &tensor) const;
  /// Where this rank's piece of a dimension begins: "now.at(tp) * 32".
  std::string offset(const runtime::Tensor &tensor, std::size_t dim) const;
  /// "{now.at(tp) * 32, 64}"
  std::string span(const runtime::Tensor &tensor, std::size_t dim) const;
  /// "{ElementType::f32, {32}, {{0, 32}}}"
  std::string view(const runtime::Tensor &tensor) const;
  /// "f32 [2, 32 of 64 (tp)]", for people.
  std::string shape(const runtime::Tensor &tensor) const;
  std::string axis(int axis) const;

  const std::string &buffer(std::size_t index) const { return buffers[index]; }
  /// Whether they may share bytes in a run.
  bool overlap(const runtime::Tensor &a, const runtime::Tensor &b) const;
  std::int64_t ranksAlong(const runtime::Tensor &tensor, std::size_t dim) const;

private:
  std::string reference(const char *how, const runtime::Tensor &tensor) const;
  /// Its place among those that split a dimension: "now.at(tp)".
  std::string place(const runtime::Tensor &tensor, std::size_t dim) const;

  const runtime::Plan &plan;
  const runtime::Stage &stage;
  std::vector<std::string> buffers, axes;
};

std::string typeText(runtime::ElementType type); ///< "ElementType::f32"
std::int64_t elementsOf(const runtime::Tensor &tensor);
/// Bytes that a tensor takes among others, as runtime/cuda rounds them up.
std::int64_t roomFor(const runtime::Tensor &tensor);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_STAGE_NAMES_H
