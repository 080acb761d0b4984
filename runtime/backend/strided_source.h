//===- strided_source.h - Where moved elements come from --------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_BACKEND_STRIDED_SOURCE_H
#define MTPLAN_RUNTIME_BACKEND_STRIDED_SOURCE_H

#include "runtime/backend/kernel.h"

namespace mtplan::runtime {

/// States where the elements of a result lie in the operand, for the kernels
/// slice, piece and transpose. A result consists of runs of `length`
/// neighbours, one for each index of `sizes` in row-major order, which starts
/// at `start` + the index times `steps` (elements). Runs are as long as
/// possible.
struct StridedSource {
  std::int64_t start = 0;
  std::vector<std::int64_t> sizes, steps;
  std::int64_t length = 1;

  /// \param spec  checkSpec has accepted it
  explicit StridedSource(const KernelSpec &spec);

  std::int64_t runs() const;
  /// Returns the start of a run.
  std::int64_t at(std::int64_t run) const;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_STRIDED_SOURCE_H
