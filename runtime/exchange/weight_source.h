//===- weight_source.h - Weights from any kind of file ----------*- C++ -*-===//
//
// A checkpoint of mtplan, safetensors of Hugging Face and a model of llm.c have
// the same parameters, under the same names and in the same layout. They are
// read one at a time, so that no model needs to fit into memory.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_EXCHANGE_WEIGHT_SOURCE_H
#define MTPLAN_RUNTIME_EXCHANGE_WEIGHT_SOURCE_H

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/model_state.h"
#include "runtime/exchange/origin.h"

namespace mtplan::runtime {

struct SourceTensor {
  StateKind kind = StateKind::weight;
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape;

  std::int64_t elements() const;
  bool operator==(const SourceTensor &) const = default;
};

class WeightSource {
public:
  virtual ~WeightSource() = default;

  /// Describes the source: "checkpoint of step 100", "gpt2 of Hugging Face, 3
  /// files".
  virtual std::string what() const = 0;
  /// Returns "gpt2", or a model's own name.
  virtual std::string model() const = 0;
  /// Returns the state of a checkpoint; null for other sources.
  virtual const RunState *run() const { return nullptr; }
  /// Returns the size of all files.
  virtual std::int64_t bytes() const = 0;
  /// Returns parameters, and moments if there are any, by name.
  const std::map<std::string, SourceTensor> &tensors() const { return all; }
  /// Returns the elements of one of tensors(), in its own type.
  /// \throws CheckpointError if its checksum differs from the manifest's
  virtual std::vector<std::byte> read(const std::string &name) const = 0;

  /// Returns the description of the original files; null if mtplan made the
  /// weights.
  const Origin *origin() const { return from ? &*from : nullptr; }
  /// Returns whether a tensor of the original that is no parameter is
  /// available.
  virtual bool hasOther(const std::string &name) const = 0;
  /// Returns the bytes of such a tensor, which must be available.
  virtual std::vector<std::byte> readOther(const std::string &name) const = 0;

protected:
  std::map<std::string, SourceTensor> all;
  std::optional<Origin> from;
};

/// Opens a checkpoint or a folder with checkpoints (the newest counts), a
/// folder with `model.safetensors` or its index, one of these files, or a model
/// of llm.c.
/// \throws CheckpointError, DataError or WeightError that says what it is not,
/// or that its tensors belong to no known family
std::unique_ptr<WeightSource> openWeights(const std::string &path);

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

/// A tensor that differs.
struct WeightDifference {
  std::string name;
  std::optional<SourceTensor> first, second; ///< none: missing
  // The following members compare tensors of equal shape in double precision.
  std::int64_t elements = 0; ///< that differ
  double largest = 0.0;      ///< of |a - b|; infinite if one is NaN
  std::int64_t at = 0;       ///< index of that element
  double size = 0.0;         ///< the largest |a|
};

struct WeightComparison {
  std::int64_t tensors = 0;                  ///< compared: in both models
  std::vector<WeightDifference> differences; ///< by name
  /// One of the two has no moments, so moments were not compared.
  bool withoutMoments = false;
};

/// Tensors of different types are equal if their numbers are.
/// \throws CheckpointError if one is damaged
WeightComparison compareWeights(const WeightSource &first,
                                const WeightSource &second);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXCHANGE_WEIGHT_SOURCE_H
