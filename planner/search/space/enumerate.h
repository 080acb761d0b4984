//===- enumerate.h - The configurations of a space --------------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_SPACE_ENUMERATE_H
#define MTPLAN_PLANNER_SEARCH_SPACE_ENUMERATE_H

#include <cstdint>
#include <string>
#include <vector>

#include "planner/search/space/setting.h"

namespace mtplan::planner {

/// A configuration that was not solved, or not to the end, and the reason.
struct Rejection {
  Parallelism config; ///< microBatch 0: all of this mesh
  /// `budget` means that the search was stopped before it.
  enum class Reason : std::uint8_t {
    divisor,
    memory,
    host, ///< the host's memory
    bound,
    pins,
    budget
  } reason{};
  /// For `bound`, `memory` and `budget`: no plan that fits is faster.
  Seconds bound;
  /// For `memory` and `host`: the memory of the plan with the fewest parameters
  /// and saved values, or a lower bound for any plan (isLowerBound).
  Bytes needed;
  bool isLowerBound = false;
  std::string detail;
  bool limited = false; ///< whether more memory might lower the bound
  /// Configurations that this one stands for, itself included: they recompute
  /// more or less, or have other cuts.
  std::int64_t count = 1;
};

const char *nameOf(Rejection::Reason reason);

/// Returns every legal configuration that `options` leave open, in a fixed
/// order. The reasons against the illegal ones go to `rejections`, once per
/// mesh.
///
/// Some are left out unless they are asked for alone, because they cost more
/// and gain nothing here: ZeRO without replicas; ZeRO 2 and 3 under a pipeline,
/// which would pay for gradient and parameter traffic per micro-batch;
/// schedules that differ only with several stages. If the number of recomputed
/// layers is open, the configuration with the fewest stands for all
/// (recomputeCounts); if a pipeline may be cut unevenly, the even cut does
/// (allowsUnevenCut).
std::vector<Parallelism> enumerateSpace(const ModelGraph &model,
                                        const Machine &machine,
                                        const SearchOptions &options,
                                        std::vector<Rejection> &rejections);

/// Returns whether some layers may recompute while others do not.
bool isCounted(const SearchOptions &options);

/// Returns how many layers of each virtual stage may recompute in
/// configurations like this one, from few to many: 0, 1, ..., -1 for all. Each
/// takes longer than the one before and saves less.
std::vector<int> recomputeCounts(const Parallelism &config,
                                 const SearchOptions &options);
/// Returns the configuration with one of these counts.
Parallelism withCount(Parallelism config, int count);
int countOf(const Parallelism &config);

/// Returns whether the configuration, or the one that stands for it, is among
/// those enumerated.
bool isInSpace(const std::vector<Parallelism> &space, const Parallelism &config,
               const SearchOptions &options);

/// Returns whether uneven cuts of this configuration belong to the space.
bool allowsUnevenCut(const Parallelism &config, const SearchOptions &options);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SPACE_ENUMERATE_H
