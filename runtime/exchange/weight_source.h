//===- weight_source.h - Weights from any kind of file ----------*- C++ -*-===//
//
// WeightSource is a common interface to checkpoints of mtplan, safetensors of
// Hugging Face and models of llm.c. Parameters have the same names and layout
// for every kind of source. Tensors are read one at a time, so a model need not
// fit into memory.
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

  /// Returns "checkpoint of step 100" or "gpt2 of Hugging Face, 3 files".
  virtual std::string what() const = 0;
  /// Returns the model's name or, for files of other tools, its family: "gpt2".
  virtual std::string model() const = 0;
  /// Returns the state of the run that wrote the checkpoint, or null if the
  /// source is not a checkpoint.
  virtual const RunState *run() const { return nullptr; }
  virtual std::int64_t bytes() const = 0;
  /// Returns the parameters by name and, for a checkpoint, the moments.
  const std::map<std::string, SourceTensor> &tensors() const { return all; }
  /// Returns the bytes of a tensor in tensors(), in the tensor's own type.
  /// \throws CheckpointError if the checksum differs from the manifest's
  virtual std::vector<std::byte> read(const std::string &name) const = 0;

  /// Returns the description of the original files; null for weights that
  /// mtplan initialised.
  const Origin *origin() const { return from ? &*from : nullptr; }
  /// Returns whether the source holds a tensor of this name from the original
  /// files. The tensor must not be a parameter.
  virtual bool hasOther(const std::string &name) const = 0;
  /// Returns the bytes of a tensor for which hasOther() is true.
  virtual std::vector<std::byte> readOther(const std::string &name) const = 0;

protected:
  std::map<std::string, SourceTensor> all;
  std::optional<Origin> from;
};

/// Opens a checkpoint, the newest checkpoint in a folder, a folder with
/// `model.safetensors` or its index, one of these files, or a model of llm.c.
/// \throws CheckpointError, DataError or WeightError if the path is none of
/// these, or if its tensors belong to no known family
std::unique_ptr<WeightSource> openWeights(const std::string &path);

/// Describes a tensor that differs between two sources. The numbers are
/// computed in double precision, and only if both shapes are equal.
struct WeightDifference {
  std::string name;
  std::optional<SourceTensor> first, second; ///< none: the source lacks it
  std::int64_t elements = 0;                 ///< number of differing elements
  double largest = 0.0; ///< largest |a - b|; infinite if a or b is not finite
  std::int64_t at = 0;  ///< index of the element with the largest difference
  double size = 0.0;    ///< largest |a|
};

struct WeightComparison {
  std::int64_t tensors = 0;                  ///< tensors that both sources have
  std::vector<WeightDifference> differences; ///< sorted by name
  /// Says whether only one source has moments. If so, moments are not compared.
  bool withoutMoments = false;
};

/// Compares the tensors of two sources by value; their types may differ.
/// \throws CheckpointError if a tensor is damaged
WeightComparison compareWeights(const WeightSource &first,
                                const WeightSource &second);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXCHANGE_WEIGHT_SOURCE_H
