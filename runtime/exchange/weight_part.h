//===- weight_part.h - A parameter within a tensor of a file ----*- C++ -*-===//
//
// The elements of one parameter, where a WeightRule has them: side by side with
// those of others, and turned over or not.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_EXCHANGE_WEIGHT_PART_H
#define MTPLAN_RUNTIME_EXCHANGE_WEIGHT_PART_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

struct WeightPart {
  std::vector<std::int64_t> whole; ///< shape of the file's tensor
  std::vector<std::int64_t> shape; ///< of the parameter
  bool transposed = false;         ///< [out, in] in the file
  int along = 0;                   ///< dimension of the file's tensor ...
  std::int64_t before = 0;         ///< ... along which so many come before it

  std::int64_t elements() const;
};

/// Copies the parameter out of the tensor. \p bytes  of an element: 2, 4 or 8.
void takePart(const WeightPart &part, std::int64_t bytes, const std::byte *file,
              std::byte *own);
/// Copies the parameter to its place in the tensor.
void putPart(const WeightPart &part, std::int64_t bytes, const std::byte *own,
             std::byte *file);

/// Rounds each once, to nearest even; the same bits where types are equal. Both
/// begin where an element of their type may.
void convertElements(ElementType from, const std::byte *source, ElementType to,
                     std::byte *target, std::int64_t elements);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXCHANGE_WEIGHT_PART_H
