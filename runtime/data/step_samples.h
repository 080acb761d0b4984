//===- step_samples.h - The inputs of a step from samples -------*- C++ -*-===//
//
// Converts samples to a model's inputs: `ids`, `targets` (negative: no target),
// `types`, `decoder_ids`, and `count`, the number of targets in the whole step.
// Random draws depend on (seed, sample, position).
//
//   next token     each target is the next position's id
//   masked         some positions are targets; at these positions, 80 % of the
//                  ids are the mask token, 10 % any token, 10 % unchanged
//                  (Devlin et al. 2019); types are 0 in the first half and 1 in
//                  the second
//   continuation   ids are the start of a sample; decoder_ids and targets are
//                  the rest (the prefix objective of Raffel et al. 2020)
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_DATA_STEP_SAMPLES_H
#define MTPLAN_RUNTIME_DATA_STEP_SAMPLES_H

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/data/dataset.h"

namespace mtplan::runtime {

struct Objective {
  enum class Kind { nextToken, masked, continuation };
  Kind kind = Kind::nextToken;
  std::uint64_t seed = 1234;

  /// For nextToken, a document ends with this token, which has no target.
  std::optional<std::int32_t> endOfDocument;

  /// For masked, this is the fraction of positions that are targets.
  double share = 0.15;
  std::int32_t maskToken = 0;
  std::int64_t vocabulary = 1; ///< exclusive bound of random tokens, > 0
  std::int64_t typeRows = 0;   ///< number of types; 0: no types

  /// For continuation, the decoder has this many positions, > 0, and its first
  /// token is `startToken`.
  std::int64_t decoderSequence = 0;
  std::int32_t startToken = 0;

  /// Returns the dataset's sequence length s for inputs of `sequence`
  /// positions.
  std::int64_t sampleSequence(std::int64_t sequence) const {
    return kind == Kind::continuation ? sequence + decoderSequence - 1
                                      : sequence;
  }
};

/// Holds the inputs of one step, row-major [samples][positions]. Inputs that
/// the objective lacks are empty.
struct StepSamples {
  std::int64_t step = 0;
  std::vector<std::int32_t> ids, targets, types, decoderIds;
  std::int64_t count = 0; ///< number of targets; may be 0
};

/// Reads all samples of a step on every process, because `count` includes the
/// targets of all samples.
class StepReader {
public:
  /// \param sequence  positions of `ids`; the dataset must have been opened for
  ///                  objective.sampleSequence(sequence)
  StepReader(std::shared_ptr<const Dataset> dataset, Objective objective,
             std::int64_t sequence, std::int64_t globalBatch);

  /// Reads step n, samples n B .. (n + 1) B - 1, of a run with a constant
  /// global batch B.
  StepSamples read(std::int64_t step) const { return read(step, step * batch); }
  /// Reads a step whose first sample has number `first`.
  StepSamples read(std::int64_t step, std::int64_t first) const;
  std::int64_t globalBatch() const { return batch; }

private:
  void readRow(std::int64_t sample, std::vector<std::int32_t> &tokens,
               StepSamples &out) const;
  void mask(std::int64_t sample, const std::vector<std::int32_t> &tokens,
            StepSamples &out) const;

  std::shared_ptr<const Dataset> dataset;
  Objective objective;
  std::int64_t sequence;
  std::int64_t batch;
};

/// Prefetches steps in one thread. The ranks of a process take the same steps,
/// at different times. A step is kept until all ranks have taken it, and at
/// most `depth` steps are kept, so that a fast rank waits for the slowest.
class Prefetcher {
public:
  using Read = std::function<StepSamples(std::int64_t step)>;

  /// Starts to read steps `first` to `end` - 1.
  /// \param takers  number of ranks that take every step, >= 1
  /// \param depth   the most steps kept, >= 1
  Prefetcher(Read read, std::int64_t first, std::int64_t end, int takers = 1,
             int depth = 2);
  ~Prefetcher();
  Prefetcher(const Prefetcher &) = delete;
  Prefetcher &operator=(const Prefetcher &) = delete;

  /// Waits for a step and returns it. Returns null after stop(). Each rank
  /// takes each of the steps `first`, `first` + 1, ... once.
  /// \throws the exception with which reading the step failed
  std::shared_ptr<const StepSamples> take(std::int64_t step);

  /// Stops reading, and wakes all waiting ranks.
  void stop();

private:
  struct Kept {
    std::shared_ptr<const StepSamples> samples;
    std::exception_ptr error;
    int left = 0; ///< ranks that have not taken the step
  };

  void run(std::int64_t step, std::int64_t end);

  Read read;
  const int takers;
  const std::size_t depth;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Kept> kept;
  std::int64_t firstKept; ///< step of kept.front()
  bool stopped = false;
  std::thread thread; ///< declared last, because it uses the other members
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_DATA_STEP_SAMPLES_H
