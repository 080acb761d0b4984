//===- foreign_source.h - Weights in files of other tools -------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXCHANGE_FOREIGN_SOURCE_H
#define MTPLAN_RUNTIME_EXCHANGE_FOREIGN_SOURCE_H

#include "runtime/exchange/weight_part.h"
#include "runtime/exchange/weight_source.h"
#include "runtime/weights/weight_rules.h"

namespace mtplan::runtime {

/// A tensor as it is stored in a file.
struct FileTensor {
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape;
  const MappedFile *file = nullptr;
  std::int64_t offset = 0;
};

/// \throws DataError, WeightError
std::unique_ptr<WeightSource> openHuggingFace(const std::string &path);
/// \throws DataError
std::unique_ptr<WeightSource> openLlmc(const std::string &path);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXCHANGE_FOREIGN_SOURCE_H
