//===- weight_part.h - A parameter within a tensor of a file ----*- C++ -*-===//
//
// The elements of one parameter in a tensor, as a WeightRule describes them:
// concatenated with other parameters, and possibly transposed.
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
  /// Dimension of the file's tensor along which parameters are concatenated.
  int along = 0;
  /// Elements before this parameter along that dimension.
  std::int64_t before = 0;

  std::int64_t elements() const;
};

/// Copies the parameter out of the tensor. \p bytes is the size of an element:
/// 2, 4 or 8.
void takePart(const WeightPart &part, std::int64_t bytes, const std::byte *file,
              std::byte *own);
/// Copies the parameter into the tensor.
void putPart(const WeightPart &part, std::int64_t bytes, const std::byte *own,
             std::byte *file);

/// Rounds each element once, to nearest even; equal types keep their bits. Both
/// arrays are aligned to their type.
void convertElements(ElementType from, const std::byte *source, ElementType to,
                     std::byte *target, std::int64_t elements);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXCHANGE_WEIGHT_PART_H
