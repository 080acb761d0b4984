//===- weight_part.h - Parameters within tensors of files -------*- C++ -*-===//
//
// A WeightRule describes how a tensor of a file holds the elements of a
// parameter: concatenated with those of other parameters, and possibly
// transposed.
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

/// The elements of one parameter in a tensor.
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

//===----------------------------------------------------------------------===//
// Tensors of files
//===----------------------------------------------------------------------===//

/// Returns the shape of a rule's tensor in the file.
/// \throws WeightError if the parameters cannot be concatenated
std::vector<std::int64_t> madeShape(const WeightSource &source,
                                    const WeightRule &rule);

/// Returns the elements of a rule's tensor in `type`, each rounded once.
std::vector<std::byte> madeTensor(const WeightSource &source,
                                  const WeightRule &rule, ElementType type);

/// Returns the names of the parameters of a source, in order.
std::vector<std::string> parametersOf(const WeightSource &source);

/// Returns a rule for every tensor of the original that parameters of `source`
/// make.
/// \throws WeightError if the two do not fit
std::map<std::string, WeightRule> rulesOf(const Origin &origin,
                                          const WeightSource &source);

/// Returns the tensors that files of the family usually have, in the network's
/// order.
/// \param family  "": the first that has a place for every parameter
/// \throws WeightError
std::vector<WeightRule> usualRules(const WeightSource &source,
                                   const std::string &family);

/// Returns the number of layers: one more than the largest number in
/// "h.<number>.".
std::int64_t layersOf(const WeightSource &source);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXCHANGE_WEIGHT_PART_H
