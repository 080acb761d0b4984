//===- reduce.h - Ordered reductions ----------------------------*- C++ -*-===//
//
// All transports but NCCL reduce with these functions, and therefore return the
// same bits. f64 is reduced in double precision. f32, f16 and bf16 are reduced
// in single precision and rounded once at the end. i32 wraps around. A maximum
// over a NaN is NaN.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_REDUCE_H
#define MTPLAN_RUNTIME_COMMUNICATOR_REDUCE_H

#include <cstdint>
#include <span>

#include "runtime/backend/element.h"
#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// Reduces elements [first, first + count) of the sources, in order, into the
/// same elements of every output. An output may be a source.
void reduceInOrder(ElementType type, Reduction reduction,
                   std::span<const void *const> sources,
                   std::span<void *const> outputs, std::int64_t first,
                   std::int64_t count);

/// Holds the range of a reduction's elements that one rank computes.
struct Share {
  std::int64_t first = 0, count = 0;
};
/// Returns the share of the rank at index `place` of a group of `size` ranks.
/// A share consists of whole blocks. Therefore no two ranks write to one cache
/// line, and a single rank reduces all elements if they fit into one block.
Share shareOf(std::int64_t count, int place, int size);

/// Copies `rows` rows of `bytes` bytes; strides are in bytes.
void copyRows(void *to, std::int64_t toStride, const void *from,
              std::int64_t fromStride, std::int64_t rows, std::int64_t bytes);

/// Convert like toFloat and toF16, with the F16C instructions if the processor
/// has them, because compilers do not vectorize loops over toFloat and toF16.
void widen(const F16 *from, float *to, std::int64_t count);
void narrow(const float *from, F16 *to, std::int64_t count);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_REDUCE_H
