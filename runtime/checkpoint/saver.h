//===- saver.h - Writes checkpoints while training goes on ------*- C++ -*-===//
//
// From begin() on a thread copies what this rank owns of the state, which until
// the next update is as it was (CheckFreq, FAST 2021). Then threads bring
// together what each rank writes, so that it is long runs of bytes; write it
// into files that all share, and bring it to the disk. A tensor that one rank
// writes gets its checksum on the way; the others are shared out to be read
// back for theirs. Rank 0 writes the manifest and gives the checkpoint its
// name. Each of these begins once every rank has done the one before, at a
// point where all ranks ask; a rank that waits for a disk keeps nobody waiting.
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
#include "runtime/checkpoint/state_slices.h"
#include "runtime/data/digest.h"

namespace mtplan::runtime {

struct SaverOptions {
  std::string folder;
  int keep = 2; ///< newest checkpoints, >= 2
};

/// How a save ended; the same on all ranks but for what says otherwise.
struct Saved {
  std::int64_t step = 0;
  std::int64_t bytes = 0; ///< of all files
  /// From begin() until it was whole, on rank 0; elsewhere, and of one that is
  /// not, to its end.
  double seconds = 0.0;
  /// Of them in begin() and awaitSnapshot(), of this rank.
  double stallSeconds = 0.0;
  std::string fault;  ///< "": the checkpoint is whole
  std::string untidy; ///< on rank 0: what could not be done after it was whole
};

/// Methods are collective: all ranks call them at the same points.
class Saver {
public:
  /// All must outlive the saver.
  /// \throws CheckpointError, on rank 0 alone, if the folder cannot be had
  Saver(const Plan &thePlan, World &world, RankExecutor &theExecutor,
        SaverOptions theOptions);

  ~Saver();
  bool busy() const { return phase != Phase::idle; }
  /// Not busy. Takes the state as it is now, which must not change before
  /// awaitSnapshot() has returned.
  void begin(const RunState &run);
  /// Of this rank alone: waits until the state has been copied.
  void awaitSnapshot();
  /// Goes on with a save, if there is one. Returns how it ended, if it did.
  /// \param wish  \p wished becomes true on all ranks if one has it
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
  std::thread room; ///< takes the snapshot's memory while training begins
  std::promise<void> taken; ///< the snapshot
  std::future<void> copied; ///< the same, until somebody has waited for it
  std::vector<Digest> mine; ///< of this rank's share
  std::vector<std::optional<Digest>> digests; ///< by tensor, where known
  std::string fault;                          ///< of the phase before clearing
  std::string untidy;                         ///< of publishing
  double start = 0.0, stall = 0.0;
  std::optional<double> named; ///< when it was whole, on rank 0
  Crew crew;                   ///< last: its thread uses the rest
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CHECKPOINT_SAVER_H
