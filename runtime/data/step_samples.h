//===- step_samples.h - What the inputs of one step hold --------*- C++ -*-===//
//
// Turns samples into what a model's inputs are named after: `ids`, `targets`
// (negative: none), `types`, `decoder_ids` and the `count` of targets in the
// whole step. What is drawn is drawn by (seed, sample, position).
//
//   next token     targets are the ids one further on
//   masked         some positions are targets; of these 80 % of the ids are the
//                  mask token, 10 % any token, 10 % as they were (Devlin et al.
//                  2019); types say 0 for the first half, 1 for the second
//   continuation   ids are a sample's beginning, decoder_ids and targets what
//                  follows it (the prefix objective of Raffel et al. 2020)
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_DATA_STEP_SAMPLES_H
#define MTPLAN_RUNTIME_DATA_STEP_SAMPLES_H

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/data/dataset.h"

namespace mtplan::runtime {

struct Objective {
  enum class Kind { nextToken, masked, continuation };
  Kind kind = Kind::nextToken;
  std::uint64_t seed = 1234;

  /// Next token: no target behind this token, which ends documents.
  std::optional<std::int32_t> endOfDocument;

  /// Masked: the share of positions that are targets.
  double share = 0.15;
  std::int32_t maskToken = 0;
  std::int64_t vocabulary = 1; ///< of tokens that replace others, > 0
  std::int64_t typeRows = 0;   ///< 0: no types

  /// Continuation: positions of the decoder, > 0, and what it starts with.
  std::int64_t decoderSequence = 0;
  std::int32_t startToken = 0;

  /// The sequence length of a Dataset for inputs of `sequence` positions.
  std::int64_t sampleSequence(std::int64_t sequence) const {
    return kind == Kind::continuation ? sequence + decoderSequence - 1
                                      : sequence;
  }
};

/// The inputs of one step, row-major [samples, positions]; those that a model
/// does not have are empty.
struct StepSamples {
  std::int64_t step = 0;
  std::vector<std::int32_t> ids, targets, types, decoderIds;
  std::int64_t count = 0; ///< targets in the whole step; may be 0
};

/// Reads whole steps, in every process the same: `count` needs them.
class StepReader {
public:
  /// \param sequence  positions of `ids`; the dataset was opened for
  ///                  objective.sampleSequence(sequence)
  StepReader(std::shared_ptr<const Dataset> dataset, Objective objective,
             std::int64_t sequence, std::int64_t globalBatch);

  /// Samples n B .. (n + 1) B - 1 of a run whose B never changed.
  StepSamples read(std::int64_t step) const { return read(step, step * batch); }
  /// \param first  sample: where a run stands that went on with another B
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

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_DATA_STEP_SAMPLES_H
