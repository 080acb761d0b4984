//===- weight_diff.h - Where two models differ ------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXCHANGE_WEIGHT_DIFF_H
#define MTPLAN_RUNTIME_EXCHANGE_WEIGHT_DIFF_H

#include <optional>
#include <string>
#include <vector>

#include "runtime/exchange/weight_source.h"

namespace mtplan::runtime {

/// A tensor that is not the same in both.
struct WeightDifference {
  std::string name;
  std::optional<SourceTensor> first, second; ///< nothing: not there
  // Of equal shapes, as numbers of double precision:
  std::int64_t elements = 0; ///< that differ
  double largest = 0.0;      ///< of |a - b|; infinite if one is not a number
  std::int64_t at = 0;       ///< the element of it, counted from 0
  double size = 0.0;         ///< the largest |a|
};

struct WeightComparison {
  std::int64_t tensors = 0;                  ///< compared: in both
  std::vector<WeightDifference> differences; ///< by name
  /// One of the two has none at all, so they were not compared.
  bool withoutMoments = false;
};

/// Tensors of other types are equal if their numbers are.
/// \throws CheckpointError if one is damaged
WeightComparison compareWeights(const WeightSource &first,
                                const WeightSource &second);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXCHANGE_WEIGHT_DIFF_H
