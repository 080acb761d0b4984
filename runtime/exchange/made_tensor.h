//===- made_tensor.h - A tensor of a file, from parameters ------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXCHANGE_MADE_TENSOR_H
#define MTPLAN_RUNTIME_EXCHANGE_MADE_TENSOR_H

#include <vector>

#include "runtime/exchange/weight_source.h"
#include "runtime/weights/weight_rules.h"

namespace mtplan::runtime {

/// \throws WeightError if the parameters do not lie side by side
std::vector<std::int64_t> madeShape(const WeightSource &source,
                                    const WeightRule &rule);

/// The elements in `type`, each rounded once.
std::vector<std::byte> madeTensor(const WeightSource &source,
                                  const WeightRule &rule, ElementType type);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXCHANGE_MADE_TENSOR_H
