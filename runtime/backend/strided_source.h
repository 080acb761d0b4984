//===- strided_source.h - What is cut out or turned round -------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_BACKEND_STRIDED_SOURCE_H
#define MTPLAN_RUNTIME_BACKEND_STRIDED_SOURCE_H

#include "runtime/backend/kernel.h"

namespace mtplan::runtime {

/// Where the elements of a result lie in the operand, for the kernels slice,
/// piece and transpose: a result is runs of `length` neighbours, one for each
/// index of `sizes` in row-major order, which starts at `start` + the index
/// times `steps` (elements). Runs are as long as can be.
struct StridedSource {
  std::int64_t start = 0;
  std::vector<std::int64_t> sizes, steps;
  std::int64_t length = 1;

  /// \param spec  that checkSpec has seen
  explicit StridedSource(const KernelSpec &spec);

  std::int64_t runs() const;
  /// Start of a run.
  std::int64_t at(std::int64_t run) const;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_STRIDED_SOURCE_H
