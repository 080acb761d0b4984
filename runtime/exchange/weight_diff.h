//===- weight_diff.h - Compares two models ----------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXCHANGE_WEIGHT_DIFF_H
#define MTPLAN_RUNTIME_EXCHANGE_WEIGHT_DIFF_H

#include <optional>
#include <string>
#include <vector>

#include "runtime/exchange/weight_source.h"

namespace mtplan::runtime {

/// A tensor that differs.
struct WeightDifference {
  std::string name;
  std::optional<SourceTensor> first, second; ///< none: missing
  // The following members compare tensors of equal shape in double precision.
  std::int64_t elements = 0; ///< that differ
  double largest = 0.0;      ///< of |a - b|; infinite if one is NaN
  std::int64_t at = 0;       ///< index of that element
  double size = 0.0;         ///< the largest |a|
};

struct WeightComparison {
  std::int64_t tensors = 0;                  ///< compared: in both models
  std::vector<WeightDifference> differences; ///< by name
  /// One of the two has no moments, so moments were not compared.
  bool withoutMoments = false;
};

/// Tensors of different types are equal if their numbers are.
/// \throws CheckpointError if one is damaged
WeightComparison compareWeights(const WeightSource &first,
                                const WeightSource &second);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXCHANGE_WEIGHT_DIFF_H
