//===- dataset.h - Samples of a corpus in one global order ------*- C++ -*-===//
//
// A sample is s + 1 tokens: s inputs, and their successors as targets. Samples
// have one global order, which depends on the corpus, the seed and the sequence
// length, never on ranks. The k-th sample of step n is sample n * B + k for a
// global batch of B, so that one number states the progress of a run, in
// whatever layout it resumes.
//
// Megatron's corpora have the order of Megatron-LM (MegatronOrder), which also
// depends on the number of samples that the run asks for. Other corpora are cut
// into samples that share a token with their neighbours. Every epoch has its
// own shuffle (Permutation), and the order never ends.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_DATA_DATASET_H
#define MTPLAN_RUNTIME_DATA_DATASET_H

#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/data/token_file.h"

namespace mtplan::runtime {

/// Parts of a corpus that share no token, in its order.
enum class DataPart { train, validation, test };

struct DataOptions {
  std::string path;
  std::optional<TokenFormat> format; ///< none: found from the file
  std::int64_t sequence = 1;         ///< s, >= 1
  /// The model's vocabulary: every token must be below.
  std::int64_t vocabulary = std::int64_t{1} << 31;
  std::uint64_t seed = 1234; ///< Megatron's order uses its low 32 bits
  DataPart part = DataPart::train;
  /// Shares of train, validation and test; normalised. Megatron's corpora are
  /// split by sequences, as `--split` does, the others by tokens.
  std::array<double, 3> split = {1, 0, 0};
  /// The number of samples that a run draws; 0: those of one epoch. Only
  /// Megatron's order depends on it.
  std::int64_t samples = 0;
};

class Dataset {
public:
  virtual ~Dataset() = default;
  Dataset() = default;
  Dataset(const Dataset &) = delete;
  Dataset &operator=(const Dataset &) = delete;

  /// Returns a name for messages.
  virtual const std::string &name() const = 0;
  /// Reads all files and describes their content, not their place: two datasets
  /// with the same options and the same identity give the same samples.
  /// \throws DataError if a file cannot be read
  virtual std::string identity() const = 0;
  const DataOptions &options() const { return settings; }

  /// Returns the number of samples before the corpus repeats.
  virtual std::int64_t samplesPerEpoch() const = 0;
  /// Returns the number of samples; nothing if the order never ends.
  virtual std::optional<std::int64_t> samples() const = 0;
  /// Writes the s + 1 tokens of a sample. May be called by several threads.
  /// \param index  >= 0
  /// \throws DataError if the order ends before, or if a token is invalid
  virtual void sample(std::int64_t index,
                      std::span<std::int32_t> tokens) const = 0;

protected:
  DataOptions settings;
};

/// Returns random tokens below the vocabulary, for measurements without a
/// corpus. The path, the part and the split in `options` are not read.
std::unique_ptr<Dataset> randomDataset(const DataOptions &options);

/// \throws DataError if the part of the corpus is shorter than one sample
std::unique_ptr<Dataset> openDataset(const DataOptions &options);

/// Returns the ends of the parts of `elements`, rounded like Megatron-LM
/// (halves to even). \throws std::invalid_argument if a share is negative or
/// all are zero
std::array<std::int64_t, 4> splitPoints(const std::array<double, 3> &shares,
                                        std::int64_t elements);

//===----------------------------------------------------------------------===//
// Orders
//===----------------------------------------------------------------------===//

/// The start of a sample.
struct SampleStart {
  std::uint32_t document = 0; ///< of MegatronOrder::documents
  std::uint32_t offset = 0;   ///< tokens into it
  bool operator==(const SampleStart &) const = default;
};

/// The order of GPTDataset (NVIDIA/Megatron-LM, megatron/core/datasets/
/// gpt_dataset.py and helpers.cpp), in memory. Sequences are repeated for as
/// many epochs as the samples need and shuffled, then cut into samples of s + 1
/// tokens that share one token with their neighbours, and the samples are
/// shuffled. A last epoch of which less than 80 % is needed is shuffled apart.
/// The order depends on the number of samples that a run asks for, like
/// Megatron's.
struct MegatronOrder {
  std::int64_t epochs = 1;
  std::vector<std::int32_t> documents; ///< sequences of the .idx, shuffled
  std::vector<SampleStart> starts;     ///< one more than there are samples
  std::vector<std::uint32_t> shuffle;  ///< sample drawn -> place in `starts`
};

/// The arguments of an order.
struct MegatronOrderRequest {
  std::int32_t firstDocument = 0, endDocument = 0; ///< of this split
  std::int64_t sequence = 1; ///< s, tokens of a sample without the last target
  std::int64_t samples = 0;  ///< wanted; 0: those of one epoch
  std::uint32_t seed = 1234;
};

/// \param length  returns the tokens of a sequence of the .idx
/// \throws std::length_error if a number is too large, or there is no token
MegatronOrder
orderAsMegatron(const MegatronOrderRequest &request,
                const std::function<std::int64_t(std::int64_t)> &length);

/// Generates the numbers of numpy.random.RandomState, as far as needed.
/// Megatron-LM orders its samples with this legacy generator, whose numbers
/// never change: MT19937 seeded by init_genrand, bounded numbers by masking and
/// rejection, a shuffle from the end down.
class NumpyRandom {
public:
  explicit NumpyRandom(std::uint32_t seed) : words(seed) {}

  /// Returns a uniform number in [0, largest].
  std::uint64_t interval(std::uint64_t largest) {
    if (largest == 0)
      return 0;
    const std::uint64_t mask = std::bit_ceil(largest + 1) - 1;
    const bool narrow = largest <= 0xFFFFFFFFU;
    std::uint64_t drawn = 0;
    do {
      drawn = words();
      if (!narrow)
        drawn = drawn << 32 | words();
      drawn &= mask;
    } while (drawn > largest);
    return drawn;
  }

  template <typename T> void shuffle(std::span<T> values) {
    for (std::size_t i = values.size(); i-- > 1;)
      std::swap(values[i], values[interval(i)]);
  }

private:
  std::mt19937 words;
};

/// A permutation of 0 .. n - 1 that is never stored. Any element can be
/// computed alone, so that a run resumes at any sample without replaying
/// earlier ones, and a corpus of any size needs no table. It is a Feistel
/// network (Luby and Rackoff 1988) over the next even power of two, with Philox
/// for its rounds, repeated until the number is below n (Black and Rogaway
/// 2002).
class Permutation {
public:
  /// \param size   n >= 1
  /// \param epoch  each has its own order
  Permutation(std::int64_t size, std::uint64_t seed, std::int64_t epoch);

  /// \param index  >= 0 and < n
  std::int64_t operator()(std::int64_t index) const;

private:
  std::uint64_t encrypt(std::uint64_t value) const;

  std::uint64_t size;
  std::uint64_t seed;
  std::uint64_t epoch;
  int halfBits = 1;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_DATA_DATASET_H
