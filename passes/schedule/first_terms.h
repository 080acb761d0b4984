//===- first_terms.h - In which run a sum begins ----------------*- C++ -*-===//

#ifndef MTPLAN_PASSES_SCHEDULE_FIRST_TERMS_H
#define MTPLAN_PASSES_SCHEDULE_FIRST_TERMS_H

#include <map>
#include <optional>
#include <vector>

namespace mtplan::passes {

/// Something that a step does to a sum of gradients.
struct SumAccess {
  int piece = 0; ///< of the sum: one for each copy of a layer, or one for all
  int microBatch = 0;
  int copy = 0; ///< of the segment, counted in the model
  /// Adds to all of the piece; none: the piece is read.
  std::optional<int> adder;
};

/// The run in which an adder stores its term.
struct FirstTerm {
  int microBatch = 0;
  std::optional<int> copy; ///< none: every copy stores

  bool operator==(const FirstTerm &) const = default;
};

/// Returns the first terms of a sum by adder, given the sum's pieces and what a
/// step does to it, in order. Returns nothing if a piece is read before it has
/// a term or never gets one, or if an adder comes first in some runs of a
/// micro-batch and later in others.
std::optional<std::map<int, FirstTerm>>
firstTermsOf(int pieces, const std::vector<SumAccess> &accesses);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_SCHEDULE_FIRST_TERMS_H
