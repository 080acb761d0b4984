//===- loader.h - Resumes from a checkpoint ---------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CHECKPOINT_LOADER_H
#define MTPLAN_RUNTIME_CHECKPOINT_LOADER_H

#include <functional>
#include <optional>
#include <string>

#include "runtime/checkpoint/manifest.h"
#include "runtime/executor/rank_executor.h"

namespace mtplan::runtime {

enum class LoadWhat {
  everything,
  weights ///< moments are zero
};

/// Collective. Fills the rank's state from the newest complete checkpoint in
/// `folder`, or from `folder` if it is a checkpoint itself, and checks every
/// checksum before anything is changed. Skips damaged checkpoints and reports
/// them to `passedOver` on rank 0. Returns nothing if there is no checkpoint.
///
/// Numbers of other types are rounded to those of the plan. Parameters must
/// exist; missing moments are zero. With weights alone, the returned run has
/// done no step.
///
/// \throws CheckpointError, the same on all ranks, if all checkpoints are
/// damaged,
///         or if one is of another model, with the first tensor that differs
std::optional<RunState>
loadNewest(const Plan &plan, World &world, RankExecutor &executor,
           const std::string &folder, LoadWhat what,
           const std::function<void(const std::string &what)> &passedOver);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CHECKPOINT_LOADER_H
