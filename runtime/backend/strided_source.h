//===- strided_source.h - Source of slice, piece, transpose -----*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_BACKEND_STRIDED_SOURCE_H
#define MTPLAN_RUNTIME_BACKEND_STRIDED_SOURCE_H

#include "runtime/backend/kernel.h"

namespace mtplan::runtime {

/// Maps the elements of a result to elements of the operand, for the kernels
/// slice, piece and transpose. The result is a sequence of runs of `length`
/// elements that are contiguous in the operand, one run for each index of
/// `sizes` in row-major order. A run starts at operand element `start` + the
/// sum of index * `steps`. Runs are as long as possible.
struct StridedSource {
  std::int64_t start = 0;
  std::vector<std::int64_t> sizes, steps;
  std::int64_t length = 1;

  /// \param spec  must have passed checkSpec
  explicit StridedSource(const KernelSpec &spec);

  std::int64_t runs() const;
  /// Returns the operand element at which a run starts.
  std::int64_t at(std::int64_t run) const;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_STRIDED_SOURCE_H
