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
  weights ///< parameters only; moments become zero
};

/// Loads the newest intact checkpoint in `folder`, or `folder` itself if it is
/// a checkpoint, into the executor. All ranks must call this. The executor
/// changes only after the checksums of manifest, headers, parameters and
/// moments have been verified. Damaged checkpoints are skipped and reported to
/// `passedOver` on rank 0. Returns the run's progress, or nothing if there is
/// no checkpoint.
///
/// Elements are converted to the plan's types. All parameters must exist;
/// missing moments become zero. With LoadWhat::weights, the function returns
/// the progress of a new run.
///
/// \throws CheckpointError, the same on all ranks, if all checkpoints are
///         damaged, or if the newest intact one is of another model
std::optional<RunState>
loadNewest(const Plan &plan, World &world, RankExecutor &executor,
           const std::string &folder, LoadWhat what,
           const std::function<void(const std::string &what)> &passedOver);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CHECKPOINT_LOADER_H
