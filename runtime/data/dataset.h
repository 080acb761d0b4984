//===- dataset.h - Samples of a corpus in one global order ------*- C++ -*-===//
//
// A sample is s + 1 tokens: s inputs, and their successors as targets. Samples
// have one global order, which depends on the corpus, the seed and the sequence
// length, but not on ranks. With a global batch of B, sample k of step n (both
// from 0) is number n * B + k. One number therefore states the progress of a
// run in any layout.
//
// Megatron's corpora have the order of Megatron-LM (MegatronOrder), which also
// depends on the number of samples that the run requests. Other corpora are
// divided into samples that share one token with their neighbours; every epoch
// has its own shuffle (Permutation), and the order is endless.
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

/// Lists the disjoint parts of a corpus, in the order of their tokens.
enum class DataPart { train, validation, test };

struct DataOptions {
  std::string path;
  std::optional<TokenFormat> format; ///< none: detected
  std::int64_t sequence = 1;         ///< s, >= 1
  /// Holds the size of the model's vocabulary, which exceeds every token.
  std::int64_t vocabulary = std::int64_t{1} << 31;
  std::uint64_t seed = 1234; ///< Megatron's order uses the low 32 bits
  DataPart part = DataPart::train;
  /// Holds the relative sizes of train, validation and test. Megatron's corpora
  /// are divided by sequences, like Megatron-LM's `--split`; other corpora are
  /// divided by tokens.
  std::array<double, 3> split = {1, 0, 0};
  /// Counts the samples that a run requests; 0 means one epoch. Only Megatron's
  /// order depends on this number.
  std::int64_t samples = 0;
};

class Dataset {
public:
  virtual ~Dataset() = default;
  Dataset() = default;
  Dataset(const Dataset &) = delete;
  Dataset &operator=(const Dataset &) = delete;

  virtual const std::string &name() const = 0;
  /// Returns checksums of the files' contents, without the files' paths.
  /// Datasets with the same options and identity have the same samples. The
  /// call reads all files.
  /// \throws DataError if a file cannot be read
  virtual std::string identity() const = 0;
  const DataOptions &options() const { return settings; }

  /// Returns the number of samples of an epoch, after which the corpus repeats.
  virtual std::int64_t samplesPerEpoch() const = 0;
  /// Returns the number of samples, or none if the order is endless.
  virtual std::optional<std::int64_t> samples() const = 0;
  /// Reads the s + 1 tokens of a sample into `tokens`. Thread-safe.
  /// \param index  >= 0
  /// \throws DataError if the order has fewer samples, or if a token is invalid
  virtual void sample(std::int64_t index,
                      std::span<std::int32_t> tokens) const = 0;

protected:
  DataOptions settings;
};

/// Returns a dataset of random tokens below the vocabulary, for measurements
/// without a corpus. Ignores the path, part and split in `options`.
std::unique_ptr<Dataset> randomDataset(const DataOptions &options);

/// \throws DataError if the part of the corpus is shorter than one sample
std::unique_ptr<Dataset> openDataset(const DataOptions &options);

/// Returns the boundaries of the three parts of `elements` elements, starting
/// with 0 and rounded as in Megatron-LM (halves to even).
/// \throws std::invalid_argument if a share is negative or all are zero
std::array<std::int64_t, 4> splitPoints(const std::array<double, 3> &shares,
                                        std::int64_t elements);

//===----------------------------------------------------------------------===//
// Orders
//===----------------------------------------------------------------------===//

struct SampleStart {
  std::uint32_t document = 0; ///< index into MegatronOrder::documents
  std::uint32_t offset = 0;   ///< tokens from the start of the document
  bool operator==(const SampleStart &) const = default;
};

/// Holds the order of samples in GPTDataset (NVIDIA/Megatron-LM,
/// megatron/core/datasets/gpt_dataset.py and helpers.cpp). The corpus's
/// sequences are repeated for as many epochs as the requested samples need, and
/// shuffled. The shuffled sequences are divided into samples of s + 1 tokens
/// that share one token with their neighbours; then the samples are shuffled.
/// If less than 80 % of the last epoch is needed, that epoch is shuffled
/// separately.
struct MegatronOrder {
  std::int64_t epochs = 1;
  std::vector<std::int32_t> documents; ///< sequences of the .idx, shuffled
  /// Holds the starts of the unshuffled samples, and of the sample that would
  /// follow the last.
  std::vector<SampleStart> starts;
  std::vector<std::uint32_t> shuffle; ///< each sample's index in `starts`
};

struct MegatronOrderRequest {
  std::int32_t firstDocument = 0, endDocument = 0; ///< range of the part
  std::int64_t sequence = 1; ///< s, tokens of a sample without the last target
  std::int64_t samples = 0;  ///< requested; 0: one epoch
  std::uint32_t seed = 1234;
};

/// Returns Megatron's order. `length` returns the number of tokens of a
/// sequence of the .idx.
/// \throws std::length_error if the number of samples, or of sequences over all
/// epochs, exceeds 2^31 - 1, or if there are no tokens
MegatronOrder
orderAsMegatron(const MegatronOrderRequest &request,
                const std::function<std::int64_t(std::int64_t)> &length);

/// Generates the numbers of numpy.random.RandomState, which Megatron-LM uses
/// and NumPy keeps unchanged. The generator is MT19937 seeded by init_genrand.
/// Numbers are bounded by masking and rejection. A shuffle begins with the last
/// element.
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

  /// Shuffles as RandomState.shuffle does.
  template <typename T> void shuffle(std::span<T> values) {
    for (std::size_t i = values.size(); i-- > 1;)
      std::swap(values[i], values[interval(i)]);
  }

private:
  std::mt19937 words;
};

/// Computes a pseudorandom permutation of 0 .. n - 1 without a table, so that a
/// run can resume at any sample and a corpus may have any size. The permutation
/// is a Feistel network (Luby and Rackoff 1988) on numbers below a power of
/// four >= n, with Philox as round function. The network is repeated until the
/// number is below n (Black and Rogaway 2002).
class Permutation {
public:
  /// \param size   n >= 1
  /// \param epoch  every epoch has its own permutation
  Permutation(std::int64_t size, std::uint64_t seed, std::int64_t epoch);

  /// Returns the element at `index` in [0, n).
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
