//===- begin_sums.h - The runs that begin gradient sums ---------*- C++ -*-===//

#ifndef MTPLAN_PASSES_SCHEDULE_BEGIN_SUMS_H
#define MTPLAN_PASSES_SCHEDULE_BEGIN_SUMS_H

#include <map>
#include <optional>
#include <vector>

namespace mtplan::passes {

/// An access of a step to a gradient accumulator, which has one piece per
/// layer, or a single piece that all layers share.
struct SumAccess {
  int piece = 0;
  int microBatch = 0;
  int copy = 0; ///< number of the layer in the model
  /// The number of the operation that adds to the piece, or none if the access
  /// reads the piece.
  std::optional<int> adder;
};

/// The run in which an operation overwrites the accumulator with its term
/// instead of adding the term.
struct FirstTerm {
  int microBatch = 0;
  std::optional<int> copy; ///< number of the layer, or none for all layers

  bool operator==(const FirstTerm &) const = default;
};

/// Returns the first terms by number of the adding operation, from the number
/// of pieces of an accumulator and its accesses in a step, in order. An
/// operation that adds no first term is absent. Returns nothing if a piece is
/// read before it has a term or never gets one, or if the runs in which an
/// operation adds first terms are neither one run nor all runs of a single
/// micro-batch.
std::optional<std::map<int, FirstTerm>>
firstTermsOf(int pieces, const std::vector<SumAccess> &accesses);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_SCHEDULE_BEGIN_SUMS_H
