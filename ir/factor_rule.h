//===- factor_rule.h - How an operator may be sharded -----------*- C++ -*-===//
//
// An operator is described once, by its factors: the index names of an einsum.
// A strategy assigns mesh axes to factors. Everything else follows from the
// rule (layouts of operands and results, where a partial sum arises):
//
//   a result that lacks a sharded factor is partial over the axis;
//   an operand that lacks it is replicated;
//   an addend is partial whenever the result is.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_FACTOR_RULE_H
#define MTPLAN_IR_FACTOR_RULE_H

#include <cstdint>
#include <string>

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace mtplan::ir {

/// The name of a factor's split. `data` leaves it to the dimension: samples are
/// batch, positions are sequence, all others are features.
enum class FactorRole : std::uint8_t { data, row, column, head, vocab, expert };

struct Factor {
  std::string name;
  /// Of this operator's types: global, or local once sharded.
  std::int64_t size = 1;
  FactorRole role = FactorRole::data;
  bool divisible = true;
  bool max = false;  ///< results that lack it are maxima and not sums
  double skew = 0.0; ///< see planner::Factor::skew
};

/// The factors of one dimension, major first; their sizes multiply to its size.
/// Only the first of several can be sharded. Empty means that the dimension has
/// no factor and is never sharded.
using DimFactors = llvm::SmallVector<int, 2>;
using TensorFactors = llvm::SmallVector<DimFactors, 4>;

struct FactorRule {
  llvm::SmallVector<Factor, 6> factors;
  llvm::SmallVector<TensorFactors, 6> operands, results;
  llvm::SmallVector<int, 2> addends; ///< operand numbers
  /// Operands of which only as many elements are read as the first result has:
  /// lookup tables.
  llvm::SmallVector<int, 1> lookedUp;
  llvm::SmallVector<llvm::SmallVector<int, 2>, 2> linearGroups;

  /// Adds a factor and returns its index.
  int add(llvm::StringRef name, std::int64_t size,
          FactorRole role = FactorRole::data) {
    factors.push_back({name.str(), size, role});
    return static_cast<int>(factors.size()) - 1;
  }
  /// Returns the index of the factor called `name`, or -1.
  int find(llvm::StringRef name) const {
    for (std::size_t i = 0; i < factors.size(); ++i)
      if (factors[i].name == name)
        return static_cast<int>(i);
    return -1;
  }
};

} // namespace mtplan::ir

#endif // MTPLAN_IR_FACTOR_RULE_H
