//===- begin_sums.h - The runs that begin gradient sums ---------*- C++ -*-===//

#ifndef MTPLAN_PASSES_SCHEDULE_BEGIN_SUMS_H
#define MTPLAN_PASSES_SCHEDULE_BEGIN_SUMS_H

#include <map>
#include <optional>
#include <vector>

namespace mtplan::passes {

/// Describes one access to a gradient accumulator in a step. An accumulator has
/// one piece per layer, or a single piece that all layers share.
struct SumAccess {
  int piece = 0;
  int microBatch = 0;
  int copy = 0; ///< number of the layer in the model
  /// Holds the number of the operation that adds to the piece, or none if the
  /// access reads the piece.
  std::optional<int> adder;
};

/// Identifies the run in which an operation overwrites the accumulator with its
/// term instead of adding the term.
struct FirstTerm {
  int microBatch = 0;
  std::optional<int> copy; ///< number of the layer, or none for all layers

  bool operator==(const FirstTerm &) const = default;
};

/// Returns, by the number of each adding operation, the run in which the
/// operation adds first terms. An operation that adds no first term is absent.
/// Returns nothing if a piece is read before it has a term, if a piece never
/// gets a term, or if an operation adds first terms in several runs that are
/// not exactly the runs of one micro-batch.
/// \param pieces    number of pieces of the accumulator
/// \param accesses  all accesses of a step to the accumulator, in order
std::optional<std::map<int, FirstTerm>>
firstTermsOf(int pieces, const std::vector<SumAccess> &accesses);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_SCHEDULE_BEGIN_SUMS_H
