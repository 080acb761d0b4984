//===- saver.h - Writes checkpoints during training -------------*- C++ -*-===//
//
// After begin(), a background thread copies this rank's state, which does not
// change before the next update (CheckFreq, FAST 2021). Then the ranks exchange
// bytes (Gatherer), write long runs into shared files, and sync the files. A
// rank that writes a whole tensor also computes its checksum. The ranks divide
// the other tensors among themselves, and read them back for their checksums.
// Finally rank 0 writes the manifest and renames the checkpoint. A phase begins
// in a call of ask() or finish(), once all ranks have completed the previous
// phase. Therefore a rank that waits for a disk does not block other ranks in
// ask().
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CHECKPOINT_SAVER_H
#define MTPLAN_RUNTIME_CHECKPOINT_SAVER_H

#include <future>
#include <optional>
#include <thread>

#include "runtime/checkpoint/background_task.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/gatherer.h"
#include "runtime/checkpoint/model_state.h"
#include "runtime/data/digest.h"
#include "runtime/executor/rank_executor.h"

namespace mtplan::runtime {

struct SaverOptions {
  std::string folder;
  int keep = 2; ///< number of newest checkpoints to keep, >= 2
};

/// Holds the result of a save, which is equal on all ranks unless noted.
struct Saved {
  std::int64_t step = 0;
  std::int64_t bytes = 0; ///< total size of all files
  /// Measures the time from begin(). The measurement ends when the checkpoint
  /// is complete on rank 0, and when the save ends on other ranks or after a
  /// failure.
  double seconds = 0.0;
  /// Measures the time that begin() and awaitSnapshot() delay this rank.
  double stallSeconds = 0.0;
  std::string fault;  ///< error; empty if the checkpoint is complete
  std::string untidy; ///< on rank 0: error after completion, or empty
};

/// Writes checkpoints. Except for awaitSnapshot(), all ranks must make the same
/// calls in the same order.
class Saver {
public:
  /// All arguments must outlive the saver.
  /// \throws CheckpointError, on rank 0 alone, if the folder cannot be locked
  Saver(const Plan &thePlan, World &world, RankExecutor &theExecutor,
        SaverOptions theOptions);

  ~Saver();
  bool busy() const { return phase != Phase::idle; }
  /// Starts to save the current state, which must not change before
  /// awaitSnapshot() has returned. No save may be in progress.
  void begin(const RunState &run);
  /// Waits until this rank's state has been copied.
  void awaitSnapshot();
  /// Advances a save to its next phase if all ranks are ready. Returns the
  /// result if the save has ended. Sets `wished` to the same value on all
  /// ranks: whether any rank passed `wish`.
  std::optional<Saved> ask(bool wish, bool &wished);
  Saved finish();

  const ModelState &state() const { return whole; }

private:
  enum class Phase { idle, preparing, writing, reading, publishing, clearing };

  void shareOut();
  void takeSnapshot();
  void prepare();
  void write();
  void read();
  void gatherChecksums();
  void publishIt();
  void clear() const;
  std::optional<Saved> advance(const BackgroundTask::State &state);

  World &world;
  RankExecutor &executor;
  SaverOptions options;
  ModelState whole;
  std::vector<StateSlice> owned;
  Gatherer gatherer;
  std::vector<std::vector<int>> shares; ///< tensors to checksum, by rank
  std::optional<FolderLock> lock;       ///< held by rank 0 only

  Phase phase = Phase::idle;
  RunState run;
  std::string partial; ///< the folder being written
  std::vector<std::byte> snapshot;
  std::thread allocator;    ///< allocates memory while training starts
  std::promise<void> taken; ///< fulfilled when the snapshot is complete
  std::future<void> copied; ///< future of `taken`; invalid once awaited
  std::vector<Digest> mine; ///< checksums that this rank computes
  std::vector<std::optional<Digest>> digests; ///< by tensor, if known
  std::string fault;  ///< error that ended the save; empty: none
  std::string untidy; ///< error of publish() after completion
  double start = 0.0, stall = 0.0;
  std::optional<double> named; ///< time of completion, on rank 0
  BackgroundTask task;         ///< declared last; uses the other members
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CHECKPOINT_SAVER_H
