//===- dataset.h - Samples of a corpus in one global order ------*- C++ -*-===//
//
// A sample is s + 1 tokens: s inputs, and their successors as targets. Samples
// have one global order, which depends on the corpus, the seed and the sequence
// length, never on ranks: the k-th sample of step n is sample n * B + k for a
// global batch of B, so that a number says where a run stands, whatever layout
// it goes on in.
//
// Megatron's corpora have the order of Megatron-LM (megatron_order.h), which
// also depends on how many samples the run asks for. The others are cut into
// samples that share a token with their neighbours; every epoch has its own
// shuffle (permutation.h), and the order goes on for ever.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_DATA_DATASET_H
#define MTPLAN_RUNTIME_DATA_DATASET_H

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "runtime/data/token_file.h"

namespace mtplan::runtime {

/// Parts of a corpus that share no token, in its order.
enum class DataPart { train, validation, test };

struct DataOptions {
  std::string path;
  std::optional<TokenFormat> format; ///< none: found from the file
  std::int64_t sequence = 1;         ///< s, >= 1
  /// Of the model: every token must be below.
  std::int64_t vocabulary = std::int64_t{1} << 31;
  std::uint64_t seed = 1234; ///< Megatron's order uses its low 32 bits
  DataPart part = DataPart::train;
  /// Shares of train, validation and test; normalised. Megatron's corpora are
  /// split by sequences, as `--split` does, the others by tokens.
  std::array<double, 3> split = {1, 0, 0};
  /// How many a run will draw; 0: those of one epoch. Only Megatron's order
  /// depends on it.
  std::int64_t samples = 0;
};

class Dataset {
public:
  virtual ~Dataset() = default;
  Dataset() = default;
  Dataset(const Dataset &) = delete;
  Dataset &operator=(const Dataset &) = delete;

  /// For messages.
  virtual const std::string &name() const = 0;
  /// Reads the files whole and says what they hold, not where they lie: two
  /// datasets with the same options and the same identity give the same
  /// samples.
  /// \throws DataError if a file cannot be read
  virtual std::string identity() const = 0;
  const DataOptions &options() const { return settings; }

  /// Samples before the corpus repeats.
  virtual std::int64_t samplesPerEpoch() const = 0;
  /// Samples that may be asked for; nothing if the order goes on for ever.
  virtual std::optional<std::int64_t> samples() const = 0;
  /// Writes the s + 1 tokens of a sample. May be called by several threads.
  /// \param index  >= 0
  /// \throws DataError if the order ends before, or at a bad token
  virtual void sample(std::int64_t index,
                      std::span<std::int32_t> tokens) const = 0;

protected:
  DataOptions settings;
};

/// Tokens that mean nothing, any below the vocabulary: to measure with, where
/// no corpus is at hand. Of `options` the path and all about parts is unread.
std::unique_ptr<Dataset> randomDataset(const DataOptions &options);

/// \throws DataError if the part of the corpus holds not one sample
std::unique_ptr<Dataset> openDataset(const DataOptions &options);

/// Where each part begins and ends of `elements`, rounded as Megatron-LM does
/// (halves to even).
/// \throws std::invalid_argument if a share is negative or all are zero
std::array<std::int64_t, 4> splitPoints(const std::array<double, 3> &shares,
                                        std::int64_t elements);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_DATA_DATASET_H
