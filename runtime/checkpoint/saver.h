//===- saver.h - Writes checkpoints while training goes on ------*- C++ -*-===//
//
// From begin() on a thread copies this rank's part of the state, which does not
// change before the next update (CheckFreq, FAST 2021). Then threads gather the
// bytes that each rank writes, so that they form long runs, write them into
// files that all ranks share, and bring them to the disk. A tensor that one
// rank writes gets its checksum on the way; the ranks divide the others among
// them and read them back for their checksums. Rank 0 writes the manifest and
// gives the checkpoint its name. Each of these phases begins once every rank
// has completed the previous one, at a point where all ranks ask; so a rank
// that waits for a disk keeps no other rank waiting.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CHECKPOINT_SAVER_H
#define MTPLAN_RUNTIME_CHECKPOINT_SAVER_H

#include <future>
#include <optional>
#include <thread>

#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/crew.h"
#include "runtime/checkpoint/gatherer.h"
#include "runtime/checkpoint/model_state.h"
#include "runtime/data/digest.h"
#include "runtime/executor/rank_executor.h"

namespace mtplan::runtime {

struct SaverOptions {
  std::string folder;
  int keep = 2; ///< newest checkpoints, >= 2
};

/// The result of a save; the same on all ranks unless stated otherwise.
struct Saved {
  std::int64_t step = 0;
  std::int64_t bytes = 0; ///< of all files
  /// From begin() until the checkpoint was complete, on rank 0; until the end
  /// of the save on other ranks, or if it failed.
  double seconds = 0.0;
  /// The part of these seconds in begin() and awaitSnapshot(), on this rank.
  double stallSeconds = 0.0;
  std::string fault;  ///< "": the checkpoint is complete
  std::string untidy; ///< on rank 0: failures after it was complete
};

/// Writes checkpoints. Methods are collective: all ranks call them at the same
/// points.
class Saver {
public:
  /// All arguments must outlive the saver.
  /// \throws CheckpointError, on rank 0 alone, if the folder cannot be locked
  Saver(const Plan &thePlan, World &world, RankExecutor &theExecutor,
        SaverOptions theOptions);

  ~Saver();
  bool busy() const { return phase != Phase::idle; }
  /// Starts to save the present state, which must not change before
  /// awaitSnapshot() has returned. The saver must not be busy.
  void begin(const RunState &run);
  /// Waits until this rank's state has been copied. Not collective.
  void awaitSnapshot();
  /// Continues a save, if there is one. Returns its result once it has ended.
  /// \param wish  \p wished becomes true on all ranks if it is true on one
  std::optional<Saved> ask(bool wish, bool &wished);
  /// Asks until the save has ended.
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
  std::optional<Saved> advance(const Crew::State &state);

  World &world;
  RankExecutor &executor;
  SaverOptions options;
  ModelState whole;
  std::vector<StateSlice> owned;
  Gatherer gatherer;
  /// Tensors, by the rank that takes their checksums.
  std::vector<std::vector<int>> shares;
  std::optional<FolderLock> lock; ///< of rank 0

  Phase phase = Phase::idle;
  RunState run;
  std::string partial; ///< the folder being written
  std::vector<std::byte> snapshot;
  std::thread room;         ///< allocates the snapshot while training begins
  std::promise<void> taken; ///< the snapshot
  std::future<void> copied; ///< the same, until it has been waited for
  std::vector<Digest> mine; ///< of this rank's share
  std::vector<std::optional<Digest>> digests; ///< by tensor, where known
  std::string fault;                          ///< of the phase before clearing
  std::string untidy;                         ///< of publishing
  double start = 0.0, stall = 0.0;
  std::optional<double> named; ///< when it was complete, on rank 0
  Crew crew;                   ///< last: its thread uses the rest
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CHECKPOINT_SAVER_H
