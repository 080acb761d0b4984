//===- weight_source.h - Weights, whoever wrote them ------------*- C++ -*-===//
//
// A checkpoint of ours, the safetensors of a model of Hugging Face's, or a
// model of llm.c: the same parameters under the same names in the same layout,
// one at a time, so that no model needs to fit into memory.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_EXCHANGE_WEIGHT_SOURCE_H
#define MTPLAN_RUNTIME_EXCHANGE_WEIGHT_SOURCE_H

#include <cstddef>
#include <map>
#include <memory>
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

  /// "checkpoint of step 100", "gpt2 of Hugging Face, 3 files"
  virtual std::string what() const = 0;
  /// "gpt2", or a model's own name
  virtual std::string model() const = 0;
  /// Of a checkpoint; null: it is somebody else's.
  virtual const RunState *run() const { return nullptr; }
  /// All files, on disk.
  virtual std::int64_t bytes() const = 0;
  /// Parameters, and moments where there are some, by name.
  const std::map<std::string, SourceTensor> &tensors() const { return all; }
  /// The elements of one of tensors(), in its own type.
  /// \throws CheckpointError if its checksum is not what the manifest says
  virtual std::vector<std::byte> read(const std::string &name) const = 0;

  /// How the files are or were; null: written here, by nobody else.
  const Origin *origin() const { return from ? &*from : nullptr; }
  /// Whether a tensor of the origin that is no parameter is there.
  virtual bool hasOther(const std::string &name) const = 0;
  /// Its bytes; must be there.
  virtual std::vector<std::byte> readOther(const std::string &name) const = 0;

protected:
  std::map<std::string, SourceTensor> all;
  std::optional<Origin> from;
};

/// Opens what is there: a checkpoint or a folder with some (then the newest), a
/// folder with `model.safetensors` or its index, one of these files, or a model
/// of llm.c.
/// \throws CheckpointError, DataError or WeightError: what it is not, or that
///         its tensors are those of no known family
std::unique_ptr<WeightSource> openWeights(const std::string &path);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXCHANGE_WEIGHT_SOURCE_H
