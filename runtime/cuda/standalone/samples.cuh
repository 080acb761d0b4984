//===- samples.cuh - What a program that stands alone trains on -*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_STANDALONE_SAMPLES_CUH
#define MTPLAN_RUNTIME_CUDA_STANDALONE_SAMPLES_CUH

#include <algorithm>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "runtime/cuda/standalone/inputs.cuh"
#include "runtime/random/draws.h"

namespace mtplan::runtime::cuda {

/// Draws samples as mtrun does for `--data synthetic`: by their number in the
/// run, whatever the size of a micro-batch.
class DrawnSamples final : public Samples {
public:
  /// \param theTargets  of a micro-batch, all ranks
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
  /// Returns how many micro-batches the run draws before this one of the step.
  std::int64_t before(int microBatch) const {
    return (step - 1) * microBatches + microBatch;
  }

  const std::uint64_t seed;
  std::int64_t step = 1;
  const int microBatches;
  const std::int64_t targets, limit;
};

/// From a file that `mtrun data steps` wrote: by step the count, then of each
/// input how many elements, and they, as 64-bit and 32-bit integers.
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
