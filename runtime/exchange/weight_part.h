//===- weight_part.h - Parameters within tensors of files -------*- C++ -*-===//
//
// A WeightRule describes a tensor of a file. The tensor contains one or several
// parameters, concatenated and possibly transposed.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_EXCHANGE_WEIGHT_PART_H
#define MTPLAN_RUNTIME_EXCHANGE_WEIGHT_PART_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/exchange/weight_source.h"
#include "runtime/plan/plan.h"
#include "runtime/weights/weight_rules.h"

namespace mtplan::runtime {

/// Locates the elements of one parameter in a tensor of a file.
struct WeightPart {
  std::vector<std::int64_t> whole; ///< shape of the tensor
  std::vector<std::int64_t> shape; ///< shape of the parameter
  /// Says whether the file stores the parameter as [out, in].
  bool transposed = false;
  /// Parameters are concatenated along this dimension of `whole`.
  int along = 0;
  /// The parameter starts at this index of dimension `along`.
  std::int64_t before = 0;

  std::int64_t elements() const;
};

/// Copies the parameter out of the tensor.
/// \param bytes  size of an element: 2, 4 or 8
void extractPart(const WeightPart &part, std::int64_t bytes,
                 const std::byte *file, std::byte *own);
/// Copies the parameter into the tensor: the inverse of extractPart.
void insertPart(const WeightPart &part, std::int64_t bytes,
                const std::byte *own, std::byte *file);

/// Converts elements, and rounds each once, to nearest even. If both types are
/// equal, the bits are copied. Each array must be aligned to its type.
void convertElements(ElementType from, const std::byte *source, ElementType to,
                     std::byte *target, std::int64_t elements);

/// Returns the shape of a rule's tensor in the file.
/// \throws WeightError if the parameters cannot be concatenated
std::vector<std::int64_t> madeShape(const WeightSource &source,
                                    const WeightRule &rule);

/// Returns the bytes of a rule's tensor in `type`; each element is rounded
/// once.
std::vector<std::byte> madeTensor(const WeightSource &source,
                                  const WeightRule &rule, ElementType type);

/// Returns the parameters' names, sorted.
std::vector<std::string> parametersOf(const WeightSource &source);

/// Returns, by name, a rule for every tensor of the original files that
/// consists of parameters of `source`.
/// \throws WeightError if the parameters do not match the original's tensors
std::map<std::string, WeightRule> rulesOf(const Origin &origin,
                                          const WeightSource &source);

/// Returns rules for the tensors that files of a family usually have, in the
/// network's order.
/// \param family  "": the first family that has a tensor for every parameter
/// \throws WeightError if no family fits
std::vector<WeightRule> usualRules(const WeightSource &source,
                                   const std::string &family);

/// Returns the number of layers: one more than the largest N in names that
/// start with "h.N.".
std::int64_t layersOf(const WeightSource &source);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXCHANGE_WEIGHT_PART_H
