//===- samples.cuh - Training data of a stand-alone program -----*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_STANDALONE_SAMPLES_CUH
#define MTPLAN_RUNTIME_CUDA_STANDALONE_SAMPLES_CUH

#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/cuda/standalone/rank.cuh"
#include "runtime/random/draws.h"

namespace mtplan::runtime::cuda {

class Samples {
public:
  virtual ~Samples() = default;
  /// Begins a step. Steps are consecutive and count from 1.
  virtual void begin(std::int64_t step) = 0;
  /// Returns the number of targets of the step, over all ranks, that are not
  /// ignored, but at least 1.
  virtual double count() = 0;
  /// Returns the elements of an input in a micro-batch, before sharding.
  /// \param limit  the elements are integers below this limit; 0 means that
  /// they are not integers
  virtual std::vector<double> values(const std::string &label, int microBatch,
                                     std::int64_t limit,
                                     std::int64_t elements) = 0;
};

/// Queues the copy of an input's shard from pinned memory, which `writeInputs`
/// fills before every step.
inline void feed(const Run &now, const char *label, const Tensor &to,
                 const TensorView &piece, std::int64_t limit) {
  const std::size_t bytes = bytesOf(to, piece.elements());
  std::byte *const from = now.rank.inputs.take(bytes);
  now.rank.fed.push_back({label, now.microBatch, piece, limit, to.type, from});
  MTPLAN_CUDA(cudaMemcpyAsync(to.data, from, bytes, cudaMemcpyHostToDevice,
                              now.stream()));
}

/// Returns this rank's shard of an input.
inline std::vector<double> pieceOf(const Fed &fed, Samples &samples) {
  std::int64_t elements = 1;
  for (const Span &span : fed.piece.pieces)
    elements *= span.global;
  const std::vector<double> all =
      samples.values(fed.label, fed.microBatch, fed.limit, elements);
  std::vector<double> mine(static_cast<std::size_t>(fed.piece.elements()));
  std::vector<std::int64_t> place(fed.piece.shape.size(), 0);
  for (double &value : mine) {
    std::int64_t global = 0;
    for (std::size_t d = 0; d < place.size(); ++d)
      global = global * fed.piece.pieces[d].global +
               fed.piece.pieces[d].offset + place[d];
    value = all[static_cast<std::size_t>(global)];
    for (std::size_t d = place.size(); d-- > 0;) {
      if (++place[d] < fed.piece.shape[d])
        break;
      place[d] = 0;
    }
  }
  return mine;
}

/// Holds the values of each input of a step, in the order of Rank::fed.
using Inputs = std::vector<std::vector<double>>;

inline Inputs inputsOf(const Rank &rank, Samples &samples) {
  std::optional<double> count; // for all micro-batches, if needed
  Inputs all;
  for (const Fed &fed : rank.fed) {
    if (fed.label == "count" && !count)
      count = samples.count();
    all.push_back(
        fed.label == "count"
            ? std::vector<double>(
                  static_cast<std::size_t>(fed.piece.elements()), *count)
            : pieceOf(fed, samples));
  }
  return all;
}

/// Writes the inputs to the pinned memory from which the next step copies.
inline void writeInputs(const Rank &rank, const Inputs &inputs,
                        double lossScale) {
  for (std::size_t f = 0; f < rank.fed.size(); ++f) {
    const Fed &fed = rank.fed[f];
    // Losses are divided by the count. Division of the count by the loss scale
    // therefore multiplies the loss by the loss scale.
    const double divisor = fed.label == "count" ? lossScale : 1.0;
    for (std::size_t i = 0; i < inputs[f].size(); ++i)
      writeElement(fed.type, fed.to, static_cast<std::int64_t>(i),
                   inputs[f][i] / divisor);
  }
}

/// Draws the samples of mtrun's `--data synthetic`. A sample depends on its
/// number in the run, not on the size of micro-batches.
class DrawnSamples final : public Samples {
public:
  /// \param theTargets  targets per micro-batch, over all ranks
  DrawnSamples(std::uint64_t theSeed, int batches, std::int64_t theTargets,
               std::int64_t theLimit)
      : seed(theSeed), microBatches(batches), targets(theTargets),
        limit(theLimit) {}

  void begin(std::int64_t theStep) override { step = theStep; }

  double count() override {
    double number = 0.0;
    const Stream stream = streamOf(kTargetsLabel);
    const std::int64_t begin = before(0) * targets,
                       end = before(microBatches) * targets;
    for (std::int64_t i = begin; i < end; ++i)
      number += targetValue(stream, i, limit) >= 0 ? 1.0 : 0.0;
    return std::max(number, 1.0);
  }

  std::vector<double> values(const std::string &label, int microBatch,
                             std::int64_t below,
                             std::int64_t elements) override {
    const Stream stream = streamOf(label);
    std::vector<double> all;
    const std::int64_t begin = before(microBatch) * elements;
    for (std::int64_t i = begin; i < begin + elements; ++i)
      all.push_back(below == 0 ? stream.normalAt(i)
                    : label == kTargetsLabel
                        ? targetValue(stream, i, below)
                        : static_cast<double>(stream.integerAt(i, below)));
    return all;
  }

private:
  Stream streamOf(const std::string &label) const {
    return Stream::ofData({seed, 0, 0, 0}, label);
  }
  /// Returns how many micro-batches precede this micro-batch in the run.
  std::int64_t before(int microBatch) const {
    return (step - 1) * microBatches + microBatch;
  }

  const std::uint64_t seed;
  std::int64_t step = 1;
  const int microBatches;
  const std::int64_t targets, limit;
};

/// Reads a file of `mtrun data steps`. For each step, the file has the count (a
/// 64-bit integer), then for each input the number of elements (a 64-bit
/// integer) and the elements (32-bit integers).
class StoredSamples final : public Samples {
public:
  explicit StoredSamples(const std::string &thePath)
      : path(thePath), file(path, std::ios::binary) {
    char magic[16] = {};
    file.read(magic, sizeof(magic));
    if (std::memcmp(magic, "mtplan steps 1\n", sizeof(magic)) != 0)
      throw std::runtime_error(path +
                               ": was not written by `mtrun data steps`");
  }

  void begin(std::int64_t step) override {
    targets = number();
    for (auto &[label, elements] : inputs) {
      elements.resize(static_cast<std::size_t>(number()));
      file.read(
          reinterpret_cast<char *>(elements.data()),
          static_cast<std::streamsize>(elements.size() * sizeof(std::int32_t)));
    }
    if (!file)
      throw std::runtime_error(path + ": ends before step " +
                               std::to_string(step));
  }

  double count() override {
    return static_cast<double>(std::max<std::int64_t>(targets, 1));
  }

  std::vector<double> values(const std::string &label, int microBatch,
                             std::int64_t /*below*/,
                             std::int64_t elements) override {
    const auto first = static_cast<std::size_t>(microBatch * elements);
    for (const auto &[name, all] : inputs)
      if (name == label &&
          first + static_cast<std::size_t>(elements) <= all.size()) {
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
        return {begin, begin + elements};
      }
    throw std::runtime_error("the samples have too few " + label);
  }

private:
  std::int64_t number() {
    std::int64_t read = 0;
    file.read(reinterpret_cast<char *>(&read), sizeof(read));
    return file ? read : 0;
  }

  const std::string path;
  std::ifstream file;
  std::int64_t targets = 0;
  std::vector<std::pair<std::string, std::vector<std::int32_t>>> inputs = {
      {"ids", {}}, {"targets", {}}, {"types", {}}, {"decoder_ids", {}}};
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_STANDALONE_SAMPLES_CUH
