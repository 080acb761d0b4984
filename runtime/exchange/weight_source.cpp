//===- weight_source.cpp - Weights from any kind of file ------------------===//

#include "runtime/exchange/weight_source.h"

#include <functional>
#include <numeric>

#include "runtime/checkpoint/stored_state.h"
#include "runtime/exchange/detect_weights.h"
#include "runtime/exchange/foreign_source.h"

namespace mtplan::runtime {

namespace {

StateKind kindOf(std::string_view name) {
  return name.ends_with(".first_moment")    ? StateKind::firstMoment
         : name.ends_with(".second_moment") ? StateKind::secondMoment
                                            : StateKind::weight;
}

class CheckpointSource final : public WeightSource {
public:
  explicit CheckpointSource(const std::string &checkpoint)
      : stored(checkpoint) {
    for (const auto &[name, tensor] : stored.tensors()) {
      const std::optional<ElementType> type = floatNamed(tensor.type);
      if (!type)
        throw CheckpointError(tensor.file->path() + ": tensor " + name +
                              " is in " + tensor.type +
                              ", which is none of F64, F32, BF16 and F16");
      all[name] = {kindOf(name), *type, tensor.shape};
    }
    if (!stored.origin().empty())
      from = readOrigin(checkpoint + "/" + kOriginName, stored.origin());
  }

  std::string what() const override {
    return "checkpoint of step " + std::to_string(stored.run().step);
  }
  std::string model() const override { return stored.run().model; }

  const RunState *run() const override { return &stored.run(); }
  std::int64_t bytes() const override {
    std::int64_t sum = 0;
    for (const ManifestFile &file : stored.storedFiles())
      sum += file.bytes;
    return sum;
  }

  std::vector<std::byte> read(const std::string &name) const override {
    return whole(name, stored.tensors().at(name));
  }
  bool hasOther(const std::string &name) const override {
    return stored.others().contains(name);
  }
  std::vector<std::byte> readOther(const std::string &name) const override {
    return whole(name, stored.others().at(name));
  }

private:
  static std::vector<std::byte> whole(const std::string &name,
                                      const StoredTensor &tensor) {
    StoredState::verify(name, tensor);
    std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes));
    tensor.file->copy(tensor.offset, tensor.bytes, bytes.data());
    return bytes;
  }

  StoredState stored;
};

} // namespace

std::int64_t SourceTensor::elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1},
                         std::multiplies<>());
}

std::unique_ptr<WeightSource> openWeights(const std::string &path) {
  switch (detectWeights(path)) {
  case WeightOwner::mtplan:
    return std::make_unique<CheckpointSource>(checkpointAt(path));
  case WeightOwner::llmc:
    return openLlmc(path);
  case WeightOwner::huggingFace:
    break;
  }
  return openHuggingFace(path);
}

} // namespace mtplan::runtime
