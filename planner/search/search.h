//===- search.h - The outer search ------------------------------*- C++ -*-===//
//
// Every way to share the devices out that the options leave open: degrees of
// data, tensor, pipeline, context and expert parallelism, micro-batch,
// schedule, cuts, ZeRO stage and who shares it, recomputation, offload, tiles.
// The strategies of each are solved exactly, the step of each is simulated, in
// the order of an admissible bound, until the bound shows that none of the rest
// can enter the list.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_SEARCH_H
#define MTPLAN_PLANNER_SEARCH_SEARCH_H

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "planner/search/price.h"
#include "planner/search/stage_solver.h"

namespace mtplan::planner {

/// A dimension that an axis must divide for a split to be legal.
struct Divisor {
  std::string name; ///< "heads", "key/value heads"
  std::int64_t size = 0;
  Split split = Split::head; ///< binding only if this split is allowed
};

/// What may be chosen; empty: everything.
template <typename T> struct Choices {
  std::vector<T> only;
  bool allows(T value) const {
    for (const T &one : only)
      if (one == value)
        return true;
    return only.empty();
  }
};

struct SearchOptions {
  int devices = 1; ///< dp * tp * pp * cp
  std::optional<int> dp, tp;
  std::optional<std::int64_t> microBatch; ///< samples per replica at once
  Choices<int> pp{{1}}, cp{{1}}, ep{{1}}, virtualStages{{1}}, zeroStage{{0}};
  /// Replicas that share what ZeRO splits; 0: all. Left open: all, or those
  /// that one level of the network joins, or one inside it.
  Choices<int> zeroRanks{{0}};
  Choices<ScheduleKind> schedule{{ScheduleKind::oneForwardOneBackward}};
  Choices<Recompute> recompute{{Recompute::none}};
  /// Layers of each part that recompute in full, where some do; -1: all.
  Choices<int> recomputeLayers{{-1}};
  /// All but none asks for a machine that describes its hosts.
  Choices<Offload> offload{{Offload::none}};
  Choices<int> tiles{{1}}; ///< more than one only in ZeRO stage 3
  /// Layers of each part of the model; empty: dealt out evenly.
  std::vector<int> layers;
  /// Unless said: stages of one part each may also be dealt out unevenly, see
  /// cuts.h.
  bool unevenCuts = false;
  Overlaps overlaps{false, false, false, false, false, false};
  std::int64_t globalBatch = 1; ///< samples per step
  Precision precision = Precision::bf16;
  const Software *software = &defaultSoftware();
  /// What ZeRO splits is padded where it does not divide, as trainers do that
  /// flatten it; our own IR cannot.
  bool padsShards = false;
  /// A weight that several segments of a stage use, such as a tied embedding,
  /// has a sum of gradients for each of those that are not repeated: then the
  /// order of micro-batches does not mix them.
  bool sumsPerUse = false;
  /// What ZeRO 1 keeps of gradients is scattered while backward runs, to where
  /// those of the copy behind were: there is room for one more copy's.
  bool scattersEarly = false;
  std::vector<Split> tensorSplits; ///< what tp may be used for
  std::vector<Divisor> divisors;
  const Pins *pins = nullptr;
  int top = 1; ///< plans to return, best first
  /// A step that takes longer is of no use.
  Seconds atMost{std::numeric_limits<double>::infinity()};
  /// Asked between candidates, once there is a plan: whether what is left is to
  /// be left as it is. None: never.
  std::function<bool()> stop;
};

/// One way to share the devices out, solved.
struct PlannedCandidate {
  Parallelism how;
  /// By part of the model, in model order: its runs.
  std::vector<std::vector<SegmentPlan>> parts;
  StepTime time;    ///< simulated
  MemoryUse memory; ///< of the fullest stage
  int fullestStage = 0;
  bool fits = false;
  Seconds lowerBound; ///< no plan of this kind is faster
  bool optimal = false;
  /// No stage has strategies whose times add up to less.
  bool isLeastSum = false;

  /// All runs in chain order.
  std::vector<SegmentPlan> plans() const;
};

/// A candidate that was not solved, or not to the end, and why.
struct Rejection {
  Parallelism how; ///< microBatch 0: all of this mesh
  /// budget: it was not reached before the search was stopped.
  enum class Reason : std::uint8_t {
    divisor,
    memory,
    host, ///< the memory of
    bound,
    pins,
    budget
  } reason{};
  /// For `bound`, `memory` and `budget`: no plan that fits is faster.
  Seconds bound;
  /// For `memory` and `host`: what any plan there needs at least (isFloor), or
  /// what the one with the least parameters and saved values does.
  Bytes needed;
  bool isFloor = false;
  std::string detail;
  bool limited = false; ///< with more memory the bound might have been less
  /// Candidates like it that it stands for, itself too: they recompute more or
  /// less, or are cut otherwise.
  std::int64_t count = 1;
};

const char *nameOf(Rejection::Reason reason);

struct SearchResult {
  std::vector<PlannedCandidate> plans; ///< that fit, fastest first
  /// Meshes that are not legal, and candidates that are not among the plans; of
  /// the latter one each.
  std::vector<Rejection> rejections;
  /// If there is no plan: the fastest that fits, though slower than asked for,
  /// or else what needs least, though more than there is.
  std::optional<PlannedCandidate> nearest;
  /// Legal ways to share the devices out, each point of the space once, also
  /// those that others stand for: pruned + solved + refused + unreached.
  std::int64_t candidates = 0;
  /// A bound of time or memory says that they cannot matter, or their plan is
  /// slower than asked for.
  std::int64_t pruned = 0;
  std::int64_t solved = 0; ///< with a plan that fits, in the list or beyond it
  std::int64_t refused =
      0; ///< nothing is legal, or what was solved is too large
  std::int64_t unreached = 0; ///< when the search was stopped
  bool optimal = false; ///< the first plan is the optimum of the whole space
  Seconds lowerBound;   ///< no plan in the space is faster; the gap, if any
};

/// Sets all but `candidates` of the counts, from the rejections.
void countCandidates(SearchResult &result, std::int64_t solved);

/// The candidate's setting: what prices and legal strategies follow from.
Setting settingOf(const SearchOptions &options, const Machine &machine,
                  const Parallelism &how);

/// Whether some traffic of parameters and gradients runs beside compute.
bool hidesReplicaTraffic(const SearchOptions &options, const Parallelism &how);

/// A layout of all values between segments (see Setting), and a step that no
/// plan with it beats.
struct BoundaryFloor {
  std::optional<int> boundary;
  Seconds floor;
};

/// What is known of a candidate before it is solved.
struct CandidateFloors {
  std::vector<BoundaryFloor> boundaries; ///< those to try
  /// By stage: the step takes at least this and all that the stage computes for
  /// its micro-batches.
  std::vector<Seconds> around;
};

/// The layouts that values between the stages of a pipeline may have; without
/// one, the free choice.
std::vector<std::optional<int>> boundariesOf(const ModelGraph &graph,
                                             const Parallelism &how);

/// Solves one candidate.
/// \param graph   for one micro-batch of all replicas
/// \param limits  when to give up, and how hard to close the gap of the bound
/// Empty if it was given up, or nothing is legal (`rejection` says which).
std::optional<PlannedCandidate>
solveCandidate(const ModelGraph &graph, const SearchOptions &options,
               const Machine &machine, const Parallelism &how,
               const CandidateFloors &floors, SolveLimits limits,
               StageCache &cache, Rejection &rejection);

/// The same with every boundary.
std::optional<PlannedCandidate>
solveCandidate(const ModelGraph &graph, const SearchOptions &options,
               const Machine &machine, const Parallelism &how,
               SolveLimits limits, StageCache &cache, Rejection &rejection);

/// The optimum over the space that `options` leaves open.
/// \param model  for any number of samples; it is scaled to each candidate's
SearchResult search(const ModelGraph &model, const Machine &machine,
                    const SearchOptions &options);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SEARCH_H
