//===- checkpoints.h - A run that can be left and taken up again *- C++ -*-===//

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

/// What a run tells of its checkpoints, on rank 0.
struct CheckpointNotes {
  std::function<void(const std::string &line)> say, warn;
  /// Once, before any step: the run begins behind this one.
  std::function<void(std::int64_t step)> begins;
};

/// Those of one rank. Methods are called by all ranks at the same points.
class Checkpoints {
public:
  /// All must outlive it.
  Checkpoints(const runtime::Plan &thePlan, runtime::World &theWorld,
              RunData &theData, const RunFlags &theFlags,
              CheckpointNotes theNotes);

  /// What train() is to call.
  runtime::TrainHooks hooks();

private:
  std::optional<runtime::TrainState> resume(runtime::RankExecutor &executor);
  std::optional<runtime::RunState> find(runtime::RankExecutor &executor);
  /// What there is to say of the difference between the runs, by line.
  /// \throws BadInput for one that cannot be gone on with
  std::vector<std::string> compare(const runtime::RunState &found) const;
  bool after(const runtime::TrainState &state);
  void report(const runtime::Saved &saved, bool isLast) const;
  runtime::RunState runState(const runtime::TrainState &state) const;
  void tell(const std::function<void(const std::string &)> &how,
            const std::string &line) const;

  const runtime::Plan &plan;
  runtime::World &world;
  RunData &data;
  const RunFlags &flags;
  CheckpointNotes notes;
  const std::string planPrint, dataPrint; ///< checksums
  std::unique_ptr<runtime::Saver> saver;  ///< null: nothing is kept
  runtime::TrainState begun;              ///< where this run began
  std::int64_t samplesBefore = 0;         ///< drawn by the runs before
};

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_CHECKPOINTS_H
