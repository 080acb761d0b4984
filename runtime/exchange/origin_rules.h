//===- origin_rules.h - Maps parameters to tensors of files -----*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXCHANGE_ORIGIN_RULES_H
#define MTPLAN_RUNTIME_EXCHANGE_ORIGIN_RULES_H

#include <map>
#include <string>
#include <vector>

#include "runtime/exchange/weight_source.h"
#include "runtime/weights/weight_rules.h"

namespace mtplan::runtime {

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

#endif // MTPLAN_RUNTIME_EXCHANGE_ORIGIN_RULES_H
