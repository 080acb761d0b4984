//===- factor_rule.h - How an operator may be split -------------*- C++ -*-===//
//
// An operator is described once, by its factors: the index names of an einsum.
// Which axis splits which factor is a strategy; everything else (layouts of
// operands and results, where a partial sum arises) follows from the rule:
//
//   a result that lacks a split factor is partial over the axis;
//   an operand that lacks it is whole;
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

/// What a split of the factor is called. `data` leaves it to the dimension:
/// samples are batch, positions are sequence, the rest features.
enum class FactorRole : std::uint8_t { data, row, column, head, vocab, expert };

struct Factor {
  std::string name;
  std::int64_t size = 1; ///< of this op's types: global, or local once split
  FactorRole role = FactorRole::data;
  bool divisible = true;
  bool max = false;  ///< results that lack it are maxima, not sums
  double skew = 0.0; ///< see planner::Factor::skew
};

/// Factors of one dimension, major first; their sizes multiply to its size.
/// Only the first of several can be split. Empty: a dimension of no factor,
/// always whole.
using DimFactors = llvm::SmallVector<int, 2>;
using TensorFactors = llvm::SmallVector<DimFactors, 4>;

struct FactorRule {
  llvm::SmallVector<Factor, 6> factors;
  llvm::SmallVector<TensorFactors, 6> operands, results;
  llvm::SmallVector<int, 2> addends; ///< operand numbers
  /// Operands of which no more is read than there are elements in the first
  /// result: tables that rows are looked up in.
  llvm::SmallVector<int, 1> lookedUp;
  llvm::SmallVector<llvm::SmallVector<int, 2>, 2> linearGroups;

  /// Adds a factor and returns its index.
  int add(llvm::StringRef name, std::int64_t size,
          FactorRole role = FactorRole::data) {
    factors.push_back({name.str(), size, role});
    return static_cast<int>(factors.size()) - 1;
  }
  /// Index of the factor called `name`, or -1.
  int find(llvm::StringRef name) const {
    for (std::size_t i = 0; i < factors.size(); ++i)
      if (factors[i].name == name)
        return static_cast<int>(i);
    return -1;
  }
};

} // namespace mtplan::ir

#endif // MTPLAN_IR_FACTOR_RULE_H
