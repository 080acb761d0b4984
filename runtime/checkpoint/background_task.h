//===- background_task.h - Background work of all ranks ---------*- C++ -*-===//
//
// Every rank runs its part of a task in a background thread. At points that all
// ranks reach, usually between steps, the ranks agree by a collective whether
// all parts are done. Therefore no collective waits for a slow disk, and a rank
// that writes slowly does not time out.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CHECKPOINT_BACKGROUND_TASK_H
#define MTPLAN_RUNTIME_CHECKPOINT_BACKGROUND_TASK_H

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "runtime/communicator/communicator.h"

namespace mtplan::runtime {

/// Runs a background task of all ranks. All ranks must make the same calls.
class BackgroundTask {
public:
  /// `theWorld` must outlive the task.
  explicit BackgroundTask(World &theWorld);
  /// Waits for this rank's part, if one is running.
  ~BackgroundTask();
  BackgroundTask(const BackgroundTask &) = delete;
  BackgroundTask &operator=(const BackgroundTask &) = delete;

  struct State {
    bool running = false; ///< some rank's part still runs
    bool wished = false;  ///< some rank passed `wish`
    /// Once no part runs, holds the error of the lowest rank whose part threw,
    /// as "rank 1: ..."; `fault` is empty if no part threw.
    std::string fault;
  };

  /// Starts this rank's part of a task; no task may be running.
  void start(std::function<void()> work);
  /// Returns the task's state. Ends the task if no part runs any more.
  State ask(bool wish = false);
  /// Waits until no part runs. Returns State::fault.
  std::string finish();

  Communicator &all() { return *allRanks; }

private:
  struct Part; ///< this rank's work and its result

  World &world;
  std::unique_ptr<Communicator> allRanks;
  std::shared_ptr<Part> part; ///< null: no task
  std::thread thread;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CHECKPOINT_BACKGROUND_TASK_H
