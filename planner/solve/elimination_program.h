//===- elimination_program.h - The layout of an elimination -----*- C++ -*-===//
//
// A program is the part of an elimination that does not depend on costs: the
// tables that each step joins, their offsets in one arena of doubles, and their
// strides. Every table has one reader and the layout that the reader needs:
//
//   outer variables ... | eliminated variable | block of variables (contiguous)
//
// The inner loop of a step runs along rows of `blockSize` doubles.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SOLVE_ELIMINATION_PROGRAM_H
#define MTPLAN_PLANNER_SOLVE_ELIMINATION_PROGRAM_H

#include <cstddef>
#include <vector>

#include "planner/solve/elimination_plan.h"

namespace mtplan::planner {

/// Describes a table in the arena that receives the sum of one or more of the
/// problem's cost tables. It has one entry for each combination of live values
/// of the variables in its scope.
struct Leaf {
  struct Part {
    int table = 0;
    /// Gives, per entry of the leaf, the index of the table's entry.
    std::vector<int> index;
  };
  std::size_t offset = 0, size = 1;
  std::vector<Part> parts;
};

/// Describes a table that a bucket joins.
struct BucketInput {
  int leaf = -1;    ///< index of the leaf, or -1 if `message` is set
  int message = -1; ///< index of the bucket whose result is the input, or -1
  std::size_t offset = 0;
  std::vector<std::size_t> strides; ///< per variable of the bucket's scope
  std::size_t variableStride = 0;
};

/// Describes a step of the elimination, which adds its inputs and minimises
/// over `variable`.
struct Bucket {
  int variable = -1;        ///< -1 in the last bucket, which does not minimise
  std::size_t values = 1;   ///< number of live values of `variable`
  std::vector<int> scope;   ///< the result's variables, in layout order
  std::vector<int> domains; ///< number of live values per variable of the scope
  std::size_t offset = 0, size = 1; ///< position of the result in the arena
  std::vector<BucketInput> inputs;

  // The members below describe the inputs in the order of the inner loops.
  struct Term {
    std::size_t offset = 0;
    std::vector<std::size_t> strides; ///< per outer variable
  };
  /// Describes a copy of an input that is repeated along the block's variables
  /// that the input lacks.
  struct Expansion {
    std::size_t from = 0, to = 0, rows = 0, fromRow = 0;
    std::vector<std::size_t> pick; ///< per entry of a block: offset in a row
  };
  std::size_t outer = 0; ///< number of the scope's outer variables
  std::size_t outerSize = 1, blockSize = 1;
  std::vector<Expansion> expansions;
  std::vector<Term> scalars; ///< inputs without the block's variables
  std::vector<Term> rows;    ///< inputs with all of the block's variables
};

struct EliminationProgram {
  LiveValues live;
  std::vector<int> keep; ///< the kept variables, without repetitions
  std::vector<Leaf> leaves;
  std::vector<Bucket> buckets; ///< the last bucket's scope: the kept variables
  std::size_t arenaSize = 0;
};

/// Returns the program of an elimination. Variables with one live value are in
/// no table; the other variables of `keep` are the last bucket's scope, in the
/// order of `keep`.
/// \throws TooLarge if the tables need more than 10^9 entries
EliminationProgram compileElimination(const Problem &shape, LiveValues live,
                                      const std::vector<int> &keep);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SOLVE_ELIMINATION_PROGRAM_H
