//===- link_runs.h - Chooses collectives and messages to measure -*- C++-*-===//

#ifndef MTPLAN_RUNTIME_CALIBRATION_LINK_RUNS_H
#define MTPLAN_RUNTIME_CALIBRATION_LINK_RUNS_H

#include <functional>
#include <memory>
#include <vector>

#include "runtime/backend/memory.h"
#include "runtime/calibration/calibration.h"

namespace mtplan::runtime {

/// Describes groups of `ranks` ranks that are `stride` apart, like the groups
/// of a mesh axis.
struct GroupShape {
  int ranks = 2, stride = 1;
  bool operator==(const GroupShape &) const = default;
};

/// Returns the shapes of groups to measure: within a host, each power of two
/// that divides its number of ranks, and all its ranks; across hosts, one rank
/// per host, and all ranks. `ranksOfHost` must divide `ranks`. No group has a
/// single rank.
std::vector<GroupShape> groupShapesOf(int ranks, int ranksOfHost);

/// Returns the ranks of the group with `rank`.
std::vector<int> groupOf(GroupShape shape, int rank);

/// Returns message sizes in bytes: 4 KiB times powers of eight, and `largest`.
std::vector<std::int64_t> messageSizes(std::int64_t largest);

/// Holds a collective or message to measure.
struct LinkRun {
  MeasuredRun run;
  std::function<void(std::int64_t)> once; ///< runs it; argument: run number
};

/// Returns messages, and all-reduce, all-gather, reduce-scatter and all-to-all
/// of all sizes over groups of each shape; none for a single rank. All groups
/// of a shape communicate at once. Collective: every rank must run the results
/// in this order. `world` must outlive the results.
std::vector<LinkRun> linkRunsOf(World &world, Memory &memory, int ranksOfHost,
                                std::int64_t largest);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CALIBRATION_LINK_RUNS_H
