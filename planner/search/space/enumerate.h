//===- enumerate.h - The configurations of a space --------------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_SPACE_ENUMERATE_H
#define MTPLAN_PLANNER_SEARCH_SPACE_ENUMERATE_H

#include <cstdint>
#include <string>
#include <vector>

#include "planner/search/space/setting.h"

namespace mtplan::planner {

/// Describes a configuration without a plan in the result, and the reason.
struct Rejection {
  Parallelism config; ///< microBatch 0: all configurations of this mesh
  /// `budget` means that the search stopped before the configuration was
  /// solved, or that the configuration is too large to be solved (`detail`).
  enum class Reason : std::uint8_t {
    divisor,
    memory,
    host, ///< the host's memory
    bound,
    pins,
    budget
  } reason{};
  /// For the reasons `bound`, `memory` and `budget`, holds a lower bound of the
  /// step of any plan that fits.
  Seconds bound;
  /// For the reasons `memory` and `host`, holds the memory of the smallest plan
  /// that was found or, if isLowerBound, a lower bound of every plan's memory.
  Bytes needed;
  bool isLowerBound = false;
  std::string detail;
  bool limited = false; ///< whether more memory might lower the bound
  /// Counts the configurations that this rejection covers: `config`, and others
  /// with other numbers of recomputed layers or other cuts.
  std::int64_t count = 1;
};

const char *nameOf(Rejection::Reason reason);

Rejection rejectionOf(const Parallelism &config, Rejection::Reason reason,
                      Seconds bound);
/// Returns the rejection of a configuration whose plans all exceed the memory.
/// \param lowerBound  of every plan's memory
Rejection tooLarge(const Parallelism &config, Rejection::Reason reason,
                   Bytes lowerBound);
/// Returns one rejection for all configurations of the cuts from `first` on;
/// there must be at least one cut. The rejection names one configuration of the
/// first of these cuts: the configuration that needs least memory if the memory
/// bound rejects all of them, otherwise the fastest.
/// \param one  the rejection of any of these configurations
Rejection ofAllCuts(Rejection one, const std::vector<std::vector<int>> &cuts,
                    std::size_t first, const SearchOptions &options);

/// Counts the rejected legal configurations by kind of reason.
struct RejectionCounts {
  /// Counts configurations that a bound of time or memory excludes, or whose
  /// plan is slower than SearchOptions::atMost.
  std::int64_t pruned = 0;
  std::int64_t refused = 0; ///< no legal plan, or the plan does not fit
  /// Counts configurations that were not solved, because the search stopped or
  /// because they are too large to be solved.
  std::int64_t unreached = 0;
};
RejectionCounts countsOf(const std::vector<Rejection> &rejections);

/// Returns every legal configuration that `options` leave open, in a fixed
/// order. Each illegal mesh is added to `rejections` once.
///
/// Configurations without an advantage are left out, unless the options request
/// no other choice: ZeRO without replicas; ZeRO-2 and ZeRO-3 with a pipeline,
/// whose gradient and parameter traffic occurs in every micro-batch; several
/// schedules with one stage, where all are equal. If the number of recomputed
/// layers is open, the configuration with the fewest recomputed layers
/// represents all (recomputeCounts); if uneven cuts are allowed, the even cut
/// represents the uneven ones (allowsUnevenCut).
std::vector<Parallelism> enumerateSpace(const ModelGraph &model,
                                        const Machine &machine,
                                        const SearchOptions &options,
                                        std::vector<Rejection> &rejections);

/// Returns whether the layers are divided as evenLayers() divides them.
bool isEven(const Parallelism &config);

/// Returns whether the options allow recomputing some layers but not all.
bool isCounted(const SearchOptions &options);

/// Returns the allowed numbers of recomputed layers per virtual stage in
/// configurations like this one, ascending: 0, 1, ..., -1 for all. A larger
/// number takes more time and less memory.
std::vector<int> recomputeCounts(const Parallelism &config,
                                 const SearchOptions &options);
/// Returns the configuration with `count`, a number from recomputeCounts().
Parallelism withCount(Parallelism config, int count);
/// Returns the number that withCount() sets.
int countOf(const Parallelism &config);

/// Returns whether `space` contains `config` or a configuration that represents
/// `config`.
bool isInSpace(const std::vector<Parallelism> &space, const Parallelism &config,
               const SearchOptions &options);

/// Returns whether uneven cuts of this configuration belong to the space.
bool allowsUnevenCut(const Parallelism &config, const SearchOptions &options);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SPACE_ENUMERATE_H
