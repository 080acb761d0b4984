//===- elimination_program.h - The layout of an elimination -----*- C++ -*-===//
//
// A program is the part of an elimination that does not depend on the numbers:
// which tables each step joins, where in one arena of doubles they are, and
// with which strides they are read. Every table's layout is chosen for its one
// reader:
//
//   outer variables ... | eliminated variable | block of variables (contiguous)
//
// so that a step's inner loop runs along rows of `blockSize` doubles.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SOLVE_ELIMINATION_PROGRAM_H
#define MTPLAN_PLANNER_SOLVE_ELIMINATION_PROGRAM_H

#include <cstddef>
#include <vector>

#include "planner/solve/elimination_plan.h"

namespace mtplan::planner {

/// Some cost tables of the problem, added up over one scope of live values.
struct Leaf {
  struct Part {
    int table = 0;
    std::vector<int> index; ///< per entry of the leaf, the table's entry
  };
  std::size_t offset = 0, size = 1;
  std::vector<Part> parts;
};

/// A table that a bucket joins, with a stride for each of its variables.
struct BucketInput {
  int leaf = -1;    ///< exactly one of these two is set
  int message = -1; ///< the bucket whose result it is
  std::size_t offset = 0;
  std::vector<std::size_t> strides; ///< per variable of the bucket's scope
  std::size_t variableStride = 0;
};

/// Joins its inputs and takes the minimum over `variable`.
struct Bucket {
  int variable = -1;        ///< -1: the last one, which takes no minimum
  std::size_t values = 1;   ///< live values of `variable`
  std::vector<int> scope;   ///< of the result, in the result's layout
  std::vector<int> domains; ///< live values per variable of the scope
  std::size_t offset = 0, size = 1; ///< of the result in the arena
  std::vector<BucketInput> inputs;

  // The same join in the order of the inner loops.
  struct Term {
    std::size_t offset = 0;
    std::vector<std::size_t> strides; ///< per outer variable
  };
  /// A copy of an input with the block's missing variables filled in.
  struct Expansion {
    std::size_t from = 0, to = 0, rows = 0, fromRow = 0;
    std::vector<std::size_t> pick; ///< per block entry, offset in `from`'s row
  };
  std::size_t outer = 0; ///< how many variables of the scope are outer
  std::size_t outerSize = 1, blockSize = 1;
  std::vector<Expansion> expansions;
  std::vector<Term> scalars; ///< inputs without the block's variables
  std::vector<Term> rows;    ///< inputs with all of them
};

struct EliminationProgram {
  LiveValues live;
  std::vector<int> keep; ///< distinct
  std::vector<Leaf> leaves;
  std::vector<Bucket> buckets; ///< the last one's scope is the kept one
  std::size_t arenaSize = 0;
};

/// Compiles a program. Variables with one live value take part in no table;
/// those of `keep` with more are the last bucket's scope, in the order of
/// `keep`. Throws std::length_error if the tables would not fit a machine (10^9
/// entries).
EliminationProgram compileElimination(const Problem &shape, LiveValues live,
                                      const std::vector<int> &keep);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SOLVE_ELIMINATION_PROGRAM_H
