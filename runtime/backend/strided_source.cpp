//===- strided_source.cpp - Source of slice, piece, transpose -------------===//

#include "runtime/backend/strided_source.h"

#include <utility>

#include "runtime/backend/signature.h"

namespace mtplan::runtime {

StridedSource::StridedSource(const KernelSpec &spec) {
  const TensorView &from = spec.inputs[0], &to = spec.outputs[0];
  const std::size_t rank = to.shape.size();
  std::vector<std::int64_t> stepOf(rank, 1);
  for (std::size_t d = rank; d-- > 1;)
    stepOf[d - 1] = stepOf[d] * from.shape[d];
  if (spec.kernel == "transpose")
    std::swap(stepOf[0], stepOf[1]);
  for (std::size_t d = 0; d < rank; ++d) {
    std::int64_t first = 0;
    if (spec.kernel == "piece")
      first = pieceOf(to, d).offset - pieceOf(from, d).offset;
    else if (spec.kernel == "slice" &&
             static_cast<std::int64_t>(d) == spec.integer("dim", 0))
      first = spec.integer("place", 0) * to.shape[d];
    start += first * stepOf[d];
  }
  std::size_t d = rank;
  for (; d > 0 && (stepOf[d - 1] == length || to.shape[d - 1] == 1); --d)
    length *= to.shape[d - 1];
  sizes.assign(to.shape.begin(), to.shape.begin() + static_cast<int>(d));
  steps.assign(stepOf.begin(), stepOf.begin() + static_cast<int>(d));
}

std::int64_t StridedSource::runs() const {
  std::int64_t all = 1;
  for (const std::int64_t size : sizes)
    all *= size;
  return all;
}

std::int64_t StridedSource::at(std::int64_t run) const {
  std::int64_t place = start;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    place += run % sizes[d] * steps[d];
    run /= sizes[d];
  }
  return place;
}

} // namespace mtplan::runtime
