//===- link_runs.h - Chooses collectives and messages to measure -*- C++-*-===//

#ifndef MTPLAN_RUNTIME_CALIBRATION_LINK_RUNS_H
#define MTPLAN_RUNTIME_CALIBRATION_LINK_RUNS_H

#include <functional>
#include <memory>
#include <vector>

#include "runtime/backend/memory.h"
#include "runtime/calibration/calibration.h"

namespace mtplan::runtime {

/// Describes groups of `ranks` ranks that are `stride` apart.
struct GroupShape {
  int ranks = 2, stride = 1;
  bool operator==(const GroupShape &) const = default;
};

/// Returns the shapes of groups to measure, each of several ranks. A group
/// within a host has all ranks of the host, or a power of two that divides
/// their number. A group across hosts has one rank per host, or all ranks.
/// `ranksOfHost` must divide `ranks`.
std::vector<GroupShape> groupShapesOf(int ranks, int ranksOfHost);

/// Returns the ranks of the group that contains `rank`.
std::vector<int> groupOf(GroupShape shape, int rank);

/// Returns message sizes in bytes: 4 KiB times powers of eight, and `largest`.
std::vector<std::int64_t> messageSizes(std::int64_t largest);

struct LinkRun {
  MeasuredRun run;
  /// Runs the operation once. The argument is the number of the run.
  std::function<void(std::int64_t)> once;
};

/// Returns the runs of messages, and of all-reduce, all-gather, reduce-scatter
/// and all-to-all for each group shape and size; none for a single rank. All
/// groups of a shape communicate at once. All ranks must call this, and run the
/// results in the order of the list. `world` must outlive the results.
std::vector<LinkRun> linkRunsOf(World &world, Memory &memory, int ranksOfHost,
                                std::int64_t largest);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CALIBRATION_LINK_RUNS_H
