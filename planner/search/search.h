//===- search.h - The outer search: mesh and micro-batch --------*- C++ -*-===//
//
// Every factorisation of the devices into data-parallel replicas and tensor
// ranks, every micro-batch that divides the batch of a replica; each solved
// exactly, in the order of an admissible bound, until the bound shows that none
// of the rest can enter the list.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_SEARCH_H
#define MTPLAN_PLANNER_SEARCH_SEARCH_H

#include <optional>
#include <string>
#include <vector>

#include "planner/search/ledger.h"
#include "planner/search/solver_cache.h"

namespace mtplan::planner {

/// A dimension that the tensor axis must divide for a split to be legal.
struct Divisor {
  std::string name; ///< "heads", "key/value heads"
  std::int64_t size = 0;
  Split split = Split::head; ///< binding only if this split is allowed
};

struct SearchOptions {
  int devices = 1; ///< dp * tp
  std::optional<int> dp, tp;
  std::optional<std::int64_t> microBatch; ///< samples per replica at once
  std::int64_t globalBatch = 1;           ///< samples per step
  Precision precision = Precision::bf16;
  std::vector<Split> tensorSplits; ///< what tp may be used for
  std::vector<Divisor> divisors;
  const Pins *pins = nullptr;
  int top = 1; ///< plans to return, best first
};

/// One mesh and micro-batch, solved.
struct PlannedCandidate {
  int dp = 1, tp = 1;
  std::int64_t microBatch = 1, microBatches = 1;
  std::vector<SegmentPlan> plans; ///< in chain order
  StepTime time;
  MemoryUse memory;
  bool fits = false;
  Seconds lowerBound; ///< no plan of this mesh and micro-batch is faster
  bool optimal = false;
};

/// A candidate that was not solved, or not to the end, and why.
struct Rejection {
  int dp = 1, tp = 1;
  std::int64_t microBatch = 1;
  enum class Reason : std::uint8_t { divisor, memory, bound, pins } reason{};
  Seconds bound; ///< for `bound` and `memory`: no plan that fits is faster
  /// For `memory`: what any plan there needs at least (isFloor), or what the
  /// one with the least parameters and saved values does.
  Bytes needed;
  bool isFloor = false;
  std::string detail;
};

struct SearchResult {
  std::vector<PlannedCandidate> plans; ///< that fit, fastest first
  /// Meshes that are not legal, and candidates that are not among the plans; of
  /// the latter one each.
  std::vector<Rejection> rejections;
  /// If nothing fits: what needs least, though more than there is.
  std::optional<PlannedCandidate> nearest;
  int candidates = 0;   ///< legal meshes times micro-batches
  int pruned = 0;       ///< of them, not solved to the end
  bool optimal = false; ///< the first plan is the optimum of the whole space
  Seconds lowerBound;   ///< no plan in the space is faster; the gap, if any
};

/// The candidate's setting: what prices and legal strategies follow from.
Setting settingOf(const SearchOptions &options, const Machine &machine, int dp,
                  int tp, std::int64_t microBatch);

/// Solves one candidate. `graph` is for one micro-batch of all replicas.
/// \param limits  when to give up, and how hard to close the gap of the bound
/// Empty if it was given up, or nothing is legal (`rejection` says which).
std::optional<PlannedCandidate>
solveCandidate(const ModelGraph &graph, const Setting &setting,
               std::int64_t microBatch, SolveLimits limits,
               SolverCache &solvers, Rejection &rejection);

/// The optimum over the space that `options` leaves open.
/// \param model  for any number of samples; it is scaled to each candidate's
SearchResult search(const ModelGraph &model, const Machine &machine,
                    const SearchOptions &options);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SEARCH_H
