//===- made_tensor.h - Makes a tensor of a file from parameters -*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXCHANGE_MADE_TENSOR_H
#define MTPLAN_RUNTIME_EXCHANGE_MADE_TENSOR_H

#include <vector>

#include "runtime/exchange/weight_source.h"
#include "runtime/weights/weight_rules.h"

namespace mtplan::runtime {

/// \throws WeightError if the parameters cannot be concatenated
std::vector<std::int64_t> madeShape(const WeightSource &source,
                                    const WeightRule &rule);

/// Returns the elements in `type`, each rounded once.
std::vector<std::byte> madeTensor(const WeightSource &source,
                                  const WeightRule &rule, ElementType type);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXCHANGE_MADE_TENSOR_H
