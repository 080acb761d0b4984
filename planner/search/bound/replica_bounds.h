//===- replica_bounds.h - Lower bounds of parameters' traffic ---*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_BOUND_REPLICA_BOUNDS_H
#define MTPLAN_PLANNER_SEARCH_BOUND_REPLICA_BOUNDS_H

#include <array>
#include <map>
#include <vector>

#include "planner/search/price/phase_times.h"
#include "planner/search/space/pipeline_parts.h"

namespace mtplan::planner {

/// Returns the number of operators of a phase that read a tensor of the
/// segment.
std::ptrdiff_t readersIn(Phase phase, const SegmentGraph &segment,
                         const Tensor &tensor);

/// Computes lower bounds of the times of a segment's parameters in every plan
/// of a configuration. Values that many configurations share are computed once.
class ReplicaBounds {
public:
  /// The model must outlive the object.
  explicit ReplicaBounds(const ModelGraph &theModel);

  /// Holds the least times of each segment's parameters: `together` if one
  /// stage holds all segments, `apart` if each segment has its own stage. The
  /// times of segments that share a parameter differ, because only the first
  /// reader on a stage counts the parameter's cost.
  struct Times {
    std::vector<PhaseTimes> together, apart;
  };
  /// Returns the times of a configuration and its setting, valid as long as the
  /// object.
  const Times &of(const Parallelism &config, const Setting &setting);
  /// Returns the times by segment in a stage that holds `parts`.
  std::vector<PhaseTimes> inStage(const Times &all,
                                  const std::vector<PipelinePart> &parts) const;

private:
  PhaseTimes timesOf(const SegmentGraph &segment, const Setting &setting,
                     std::vector<bool> &paid) const;

  const ModelGraph &model;
  std::map<std::array<std::int64_t, 9>, Times> known;
  /// Lists, by segment, the earlier segments that share a parameter with it.
  std::vector<std::vector<std::size_t>> sharing;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_BOUND_REPLICA_BOUNDS_H
