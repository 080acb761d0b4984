//===- loader.h - Goes on from a checkpoint ---------------------*- C++ -*-===//

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

/// Collective. Fills the rank's state from the newest whole checkpoint in
/// `folder`, or from `folder` if that is one itself; every checksum is checked
/// before anything is changed. One that is damaged is told to `passedOver`, on
/// rank 0, and the one before it is taken. Nothing if there is no checkpoint.
///
/// Numbers of other types are rounded to those of the plan. Parameters need to
/// be there; moments that are not are zero. Of weights alone, the run that is
/// returned has done no step.
///
/// \throws CheckpointError, the same on all ranks, if every one that is there
///         is damaged, or if it is one of another model, with the first tensor
///         that differs
std::optional<RunState>
loadNewest(const Plan &plan, World &world, RankExecutor &executor,
           const std::string &folder, LoadWhat what,
           const std::function<void(const std::string &what)> &passedOver);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CHECKPOINT_LOADER_H
