//===- link_runs.h - Which collectives and messages are measured -*- C++-*-===//

#ifndef MTPLAN_RUNTIME_CALIBRATION_LINK_RUNS_H
#define MTPLAN_RUNTIME_CALIBRATION_LINK_RUNS_H

#include <functional>
#include <memory>
#include <vector>

#include "runtime/backend/memory.h"
#include "runtime/calibration/calibration.h"

namespace mtplan::runtime {

/// Groups of `ranks` ranks that are `stride` apart, as a mesh axis forms them.
struct GroupShape {
  int ranks = 2, stride = 1;
  bool operator==(const GroupShape &) const = default;
};

/// Returns groups of 2, 4, ... and all ranks within a host; across hosts,
/// groups of one rank per host and the group of all. `ranksOfHost` divides
/// `ranks`. No group has one rank.
std::vector<GroupShape> groupShapesOf(int ranks, int ranksOfHost);

/// Returns the ranks of the group that `rank` is in.
std::vector<int> groupOf(GroupShape shape, int rank);

/// Returns powers of eight from 4 KiB, and `largest`.
std::vector<std::int64_t> messageSizes(std::int64_t largest);

/// A collective or message that can be run.
struct LinkRun {
  MeasuredRun run;
  std::function<void(std::int64_t)> once;
};

/// Returns all kinds and sizes, over groups of each shape that all communicate
/// at once. Every rank calls this and runs them in this order. They refer to
/// `world`.
std::vector<LinkRun> linkRunsOf(World &world, Memory &memory, int ranksOfHost,
                                std::int64_t largest);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CALIBRATION_LINK_RUNS_H
