//===- link_runs.h - Which collectives and messages are measured -*- C++-*-===//

#ifndef MTPLAN_RUNTIME_CALIBRATION_LINK_RUNS_H
#define MTPLAN_RUNTIME_CALIBRATION_LINK_RUNS_H

#include <functional>
#include <memory>
#include <vector>

#include "runtime/backend/memory.h"
#include "runtime/calibration/measured_run.h"

namespace mtplan::runtime {

/// Groups of `ranks` that are `stride` apart, as a mesh axis cuts all ranks.
struct GroupShape {
  int ranks = 2, stride = 1;
  bool operator==(const GroupShape &) const = default;
};

/// Inside a host 2, 4, ... and all of its ranks; across hosts one of each, and
/// all. `ranksOfHost` divides `ranks`. None of one rank.
std::vector<GroupShape> groupShapesOf(int ranks, int ranksOfHost);

/// Places of the group that `rank` is in.
std::vector<int> groupOf(GroupShape shape, int rank);

/// Powers of eight from 4 KiB, and `largest`.
std::vector<std::int64_t> messageSizes(std::int64_t largest);

/// A collective or message that can be run.
struct LinkRun {
  MeasuredRun run;
  std::function<void(std::int64_t)> once;
};

/// All kinds and sizes, over groups of each shape that all talk at once. Every
/// rank calls it, and runs them in this order. They refer to `world`.
std::vector<LinkRun> linkRunsOf(World &world, Memory &memory, int ranksOfHost,
                                std::int64_t largest);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CALIBRATION_LINK_RUNS_H
