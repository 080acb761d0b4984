//===- step_samples.h - What the inputs of a step hold ----------*- C++ -*-===//
//
// Turns samples into a model's inputs: `ids`, `targets` (negative: none),
// `types`, `decoder_ids` and the `count` of targets in the whole step. Random
// draws depend on (seed, sample, position).
//
//   next token     targets are the ids one position further
//   masked         some positions are targets; of these 80 % of the ids are the
//                  mask token, 10 % any token, 10 % unchanged (Devlin et al.
//                  2019); types are 0 in the first half and 1 in the second
//   continuation   ids are a sample's beginning, decoder_ids and targets its
//                  rest (the prefix objective of Raffel et al. 2020)
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

  /// For the next token: this token ends documents, and no target follows it.
  std::optional<std::int32_t> endOfDocument;

  /// For masked: the share of positions that are targets.
  double share = 0.15;
  std::int32_t maskToken = 0;
  std::int64_t vocabulary = 1; ///< of tokens that replace others, > 0
  std::int64_t typeRows = 0;   ///< 0: no types

  /// For a continuation: positions of the decoder, > 0, and its first token.
  std::int64_t decoderSequence = 0;
  std::int32_t startToken = 0;

  /// Returns the sequence length of a Dataset for inputs of `sequence`
  /// positions.
  std::int64_t sampleSequence(std::int64_t sequence) const {
    return kind == Kind::continuation ? sequence + decoderSequence - 1
                                      : sequence;
  }
};

/// The inputs of one step, row-major [samples, positions]. Inputs that a model
/// lacks are empty.
struct StepSamples {
  std::int64_t step = 0;
  std::vector<std::int32_t> ids, targets, types, decoderIds;
  std::int64_t count = 0; ///< targets in the whole step; may be 0
};

/// Reads whole steps, the same in every process, because `count` needs them.
class StepReader {
public:
  /// \param sequence  positions of `ids`; the dataset was opened for
  ///                  objective.sampleSequence(sequence)
  StepReader(std::shared_ptr<const Dataset> dataset, Objective objective,
             std::int64_t sequence, std::int64_t globalBatch);

  /// Reads samples n B .. (n + 1) B - 1, for a run whose B never changes.
  StepSamples read(std::int64_t step) const { return read(step, step * batch); }
  /// \param first  the step's first sample, for a run that changed its B
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

/// Reads steps ahead in one thread. The ranks of a process take the same steps,
/// each at its own pace. A step is kept until all have taken it, and at most
/// `depth` steps are kept, so a rank that runs ahead waits for the slowest. An
/// exception of the thread is thrown where the step is taken.
class Prefetcher {
public:
  using Read = std::function<StepSamples(std::int64_t step)>;

  /// Reads steps `first` to `end` - 1.
  /// \param takers  ranks that each take every step, >= 1
  /// \param depth   steps kept at most, >= 1
  Prefetcher(Read read, std::int64_t first, std::int64_t end, int takers = 1,
             int depth = 2);
  ~Prefetcher();
  Prefetcher(const Prefetcher &) = delete;
  Prefetcher &operator=(const Prefetcher &) = delete;

  /// Waits for a step. Each taker asks for `first`, `first` + 1, ... once.
  /// Returns null after stop().
  /// \throws the exception that reading the step threw
  std::shared_ptr<const StepSamples> take(std::int64_t step);

  /// Wakes all waiting takers, and reads no more.
  void stop();

private:
  struct Kept {
    std::shared_ptr<const StepSamples> samples;
    std::exception_ptr error;
    int left = 0; ///< takers that have yet to come
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
  std::thread thread; ///< last, because it uses the other members
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_DATA_STEP_SAMPLES_H
