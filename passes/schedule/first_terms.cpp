//===- first_terms.cpp - In which run a sum begins ------------------------===//

#include "passes/schedule/first_terms.h"

#include <algorithm>
#include <set>

namespace mtplan::passes {

namespace {

/// The runs of an adder in a step.
struct AdderRuns {
  /// Micro-batch and copy of the runs that begin a piece.
  std::set<std::pair<int, int>> first;
  std::set<int> later; ///< micro-batches of the other runs

  bool isFirstOnce() const { return first.size() == 1; }

  /// Whether all runs of one micro-batch come first, or none does.
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
