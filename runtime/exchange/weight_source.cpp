//===- weight_source.cpp - Weights, whoever wrote them --------------------===//

#include "runtime/exchange/weight_source.h"

#include <filesystem>
#include <functional>
#include <numeric>

#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/stored_state.h"
#include "runtime/exchange/foreign_source.h"

namespace mtplan::runtime {

namespace fs = std::filesystem;

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
    const std::byte *data = tensor.file->at(tensor.offset, tensor.bytes);
    return {data, data + tensor.bytes};
  }

  StoredState stored;
};

} // namespace

std::int64_t SourceTensor::elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1},
                         std::multiplies<>());
}

std::string checkpointAt(const std::string &path) {
  if (!fs::is_directory(path))
    return "";
  if (fs::exists(fs::path(path) / kManifestName))
    return path;
  const std::vector<std::int64_t> steps = stepsIn(path);
  return steps.empty() ? "" : path + "/" + stepName(steps.back());
}

std::unique_ptr<WeightSource> openWeights(const std::string &path) {
  if (const std::string checkpoint = checkpointAt(path); !checkpoint.empty())
    return std::make_unique<CheckpointSource>(checkpoint);
  if (fs::is_regular_file(path) && fs::path(path).extension() != ".json" &&
      isLlmcModel(MappedFile(path)))
    return openLlmc(path);
  return openHuggingFace(path);
}

} // namespace mtplan::runtime
