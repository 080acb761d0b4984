//===- checkpoints.h - Saving and resuming a run ----------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUN_CHECKPOINTS_H
#define MTPLAN_TOOLS_RUN_CHECKPOINTS_H

#include <functional>
#include <memory>
#include <string>

#include "runtime/checkpoint/saver.h"
#include "runtime/executor/train.h"
#include "tools/run/run_data.h"
#include "tools/run/run_flags.h"

namespace mtplan::tools {

/// Receives messages on rank 0.
struct CheckpointNotes {
  std::function<void(const std::string &line)> print, warn;
  /// The run calls this function once, before any step, with the number of the
  /// last completed step.
  std::function<void(std::int64_t step)> begins;
};

/// Saves and loads the checkpoints of one rank. All ranks call the methods at
/// the same points.
class Checkpoints {
public:
  /// The arguments must outlive the checkpoints.
  Checkpoints(const runtime::Plan &thePlan, runtime::World &theWorld,
              RunData &theData, const RunFlags &theFlags,
              CheckpointNotes theNotes);

  runtime::TrainHooks hooks();

private:
  std::optional<runtime::TrainState> resume(runtime::RankExecutor &executor);
  std::optional<runtime::RunState> find(runtime::RankExecutor &executor);
  /// Returns lines that state the step of `found` and the settings in which
  /// this run differs from the checkpoint's run.
  /// \throws BadInput for a difference that prevents resuming
  std::vector<std::string> compare(const runtime::RunState &found) const;
  bool after(const runtime::TrainState &state);
  void report(const runtime::Saved &saved, bool isLast) const;
  runtime::RunState runState(const runtime::TrainState &state) const;
  void notify(const std::function<void(const std::string &)> &sink,
              const std::string &line) const;

  const runtime::Plan &plan;
  runtime::World &world;
  RunData &data;
  const RunFlags &flags;
  CheckpointNotes notes;
  const std::string planPrint;
  DataIdentity trained; ///< empty unless checkpoints are saved or loaded
  std::unique_ptr<runtime::Saver> saver; ///< null: nothing is saved
  runtime::TrainState begun;             ///< state at the start of this run
  std::int64_t samplesBefore = 0;        ///< samples drawn by earlier runs
};

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_CHECKPOINTS_H
