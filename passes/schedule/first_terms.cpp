//===- first_terms.cpp - The runs that begin gradient sums ----------------===//

#include "passes/schedule/first_terms.h"

#include <algorithm>
#include <set>

namespace mtplan::passes {

namespace {

/// The runs of an adding operation in a step.
struct AdderRuns {
  /// Micro-batch and layer of the runs that add the first term of a piece.
  std::set<std::pair<int, int>> first;
  std::set<int> later; ///< micro-batches of the other runs

  bool isFirstOnce() const { return first.size() == 1; }

  /// Returns whether all layers of one micro-batch add first terms, or none.
  bool isFirstInAllCopies() const {
    return std::ranges::all_of(first, [&](const auto &run) {
      return run.first == first.begin()->first && !later.contains(run.first);
    });
  }
};

} // namespace

std::optional<std::map<int, FirstTerm>>
firstTermsOf(int pieces, const std::vector<SumAccess> &accesses) {
  std::set<int> begun;
  std::map<int, AdderRuns> adders;
  for (const SumAccess &access : accesses) {
    const bool isFirst = begun.insert(access.piece).second;
    if (!access.adder && isFirst)
      return std::nullopt;
    if (!access.adder)
      continue;
    AdderRuns &runs = adders[*access.adder];
    if (isFirst)
      runs.first.emplace(access.microBatch, access.copy);
    else
      runs.later.insert(access.microBatch);
  }
  if (static_cast<int>(begun.size()) != pieces)
    return std::nullopt;
  std::map<int, FirstTerm> terms;
  for (const auto &[adder, runs] : adders) {
    if (!runs.isFirstOnce() && !runs.isFirstInAllCopies())
      return std::nullopt;
    if (runs.first.empty())
      continue;
    const auto [microBatch, copy] = *runs.first.begin();
    FirstTerm &term = terms[adder] = {microBatch, std::nullopt};
    if (!runs.isFirstInAllCopies())
      term.copy = copy;
  }
  return terms;
}

} // namespace mtplan::passes
