//===- weight_source.cpp - Weights from any kind of file ------------------===//

#include "runtime/exchange/weight_source.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

#include "runtime/backend/element.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/exchange/detect_weights.h"
#include "runtime/exchange/weight_part.h"
#include "runtime/weights/families.h"

namespace mtplan::runtime {

namespace {

std::string quoted(std::string_view text) {
  return '"' + std::string(text) + '"';
}

struct FileTensor {
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape;
  const MappedFile *file = nullptr;
  std::int64_t offset = 0;
};

class ForeignSource : public WeightSource {
public:
  std::vector<std::byte> read(const std::string &name) const override {
    const auto &[tensor, part] = parts.at(name);
    const std::int64_t size = bytesOf(tensor.type);
    std::int64_t bytes = size;
    for (const std::int64_t extent : part.whole)
      bytes *= extent;
    std::vector<std::byte> own(
        static_cast<std::size_t>(part.elements() * size));
    std::vector<std::byte> whole(static_cast<std::size_t>(bytes));
    tensor.file->copy(tensor.offset, bytes, whole.data());
    extractPart(part, size, whole.data(), own.data());
    return own;
  }

protected:
  /// Adds the parameters of a rule's tensor, which must all have the same size.
  void add(const std::string &path, const std::string &name,
           const WeightRule &rule, const FileTensor &tensor) {
    auto refuse = [&](const std::string &why) {
      throw WeightError(path + ": tensor " + quoted(name) + " is " +
                        shapeWords(tensor.shape) + ", " + why);
    };
    const auto count = static_cast<std::int64_t>(rule.labels.size());
    if (rule.transposed && tensor.shape.size() != 2)
      refuse("but the weight of a linear layer is a matrix");
    const auto along = static_cast<std::size_t>(rule.along);
    if (count > 1 && (along >= tensor.shape.size() || tensor.shape.size() > 2 ||
                      tensor.shape[along] % count != 0))
      refuse("which does not divide into the " + std::to_string(count) +
             " equal tensors that it holds");
    for (std::int64_t i = 0; i < count; ++i) {
      WeightPart part;
      part.whole = tensor.shape;
      part.shape = tensor.shape;
      part.transposed = rule.transposed;
      part.along = static_cast<int>(along);
      if (count > 1) {
        part.shape[along] /= count;
        part.before = i * part.shape[along];
      }
      if (rule.transposed)
        std::ranges::reverse(part.shape);
      const std::string &label = rule.labels[static_cast<std::size_t>(i)];
      all[label] = {StateKind::weight, tensor.type, part.shape};
      parts.emplace(label, std::pair(tensor, std::move(part)));
    }
  }

private:
  std::map<std::string, std::pair<FileTensor, WeightPart>> parts;
};

class HuggingFaceSource final : public ForeignSource {
public:
  explicit HuggingFaceSource(const std::string &path)
      : files(ModelFiles::open(path)), names(recogniseAll(path)) {
    const std::vector<std::string> theirs = namesIn(files);
    const WeightTable table = expectedTable(path, theirs);
    // Maps the first parameter of a rule to the first tensor with this rule.
    std::map<std::string, std::string> made;
    for (const auto &[name, rule] : rulesByName(table, theirs)) {
      const ModelTensor &tensor = *files.find(name);
      const std::optional<ElementType> type = floatNamed(tensor.tensor->type);
      if (!type)
        throw WeightError(path + ": tensor " + quoted(name) + " is in " +
                          tensor.tensor->type +
                          ", which is none of F64, F32, BF16 and F16");
      const auto [first, isFirst] = made.emplace(rule.labels[0], name);
      if (isFirst)
        add(path, name, rule,
            {*type, tensor.tensor->shape, tensor.file, tensor.offset});
      else if (!same(*files.find(first->second), tensor))
        throw WeightError(path + ": tensor " + quoted(name) + " differs from " +
                          quoted(first->second) + ", and " + names.family +
                          " has one tensor for both");
    }
    from = originOf(files, path);
  }

  std::string what() const override {
    const std::size_t count = files.files().size();
    return names.family + " of Hugging Face, " + std::to_string(count) +
           (count == 1 ? " file" : " files");
  }
  std::string model() const override { return names.family; }
  std::int64_t bytes() const override {
    std::int64_t sum = 0;
    for (const auto &file : files.files())
      sum += file->bytes.size();
    return sum;
  }

  bool hasOther(const std::string &name) const override {
    return files.find(name) != nullptr;
  }
  std::vector<std::byte> readOther(const std::string &name) const override {
    const ModelTensor &tensor = *files.find(name);
    const std::int64_t count = tensor.tensor->bytes();
    std::vector<std::byte> bytes(static_cast<std::size_t>(count));
    tensor.file->copy(tensor.offset, count, bytes.data());
    return bytes;
  }

private:
  WeightNames recogniseAll(const std::string &path) const try {
    return recogniseWeights(namesIn(files));
  } catch (const WeightError &error) {
    throw WeightError(path + ": " + error.what());
  }

  WeightTable expectedTable(const std::string &path,
                            const std::vector<std::string> &theirs) const try {
    WeightTable table = weightTable(names, labels());
    expectWeights(table, theirs);
    return table;
  } catch (const WeightError &error) {
    throw WeightError(path + ": " + error.what());
  }

  static std::vector<std::string> namesIn(const ModelFiles &files) {
    std::vector<std::string> names;
    for (const auto &[name, tensor] : files.tensors())
      names.push_back(name);
    return names;
  }

  const ModelTensor *find(const WeightRule &rule) const {
    const ModelTensor *found = files.find(rule.name);
    return found || rule.olderName.empty() ? found : files.find(rule.olderName);
  }

  // Returns the parameters that the files contain, because some parameters of a
  // family are optional. Some tensors may be either a parameter or a tied copy
  // of another tensor. Such a tensor counts as a copy if it has the bytes of
  // the other tensor.
  std::vector<std::string> labels() const {
    const WeightFamily &family = familyCalled(names.family);
    const Layers layers = layersBelow(names.layers);
    const std::vector<WeightSlot> slots = slotsOf(family, names.prefix, layers);
    std::map<std::string_view, const ModelTensor *> holder; // by parameter
    for (const WeightSlot &slot : slots)
      if (slot.rule.labels.size() == 1)
        holder[slot.rule.labels[0]] = find(slot.rule);
    std::set<std::string> copies;
    for (const SkippedWeight &skipped : skippedOf(family, names.prefix, layers))
      if (!skipped.of.empty()) {
        const ModelTensor *own = files.find(skipped.name);
        const auto of = holder.find(skipped.of);
        if (own && of != holder.end() && of->second && same(*own, *of->second))
          copies.insert(skipped.name);
      }
    std::vector<std::string> labels;
    for (const WeightSlot &slot : slots)
      if (find(slot.rule) && !copies.contains(slot.rule.name))
        labels.insert(labels.end(), slot.rule.labels.begin(),
                      slot.rule.labels.end());
    return labels;
  }

  static bool same(const ModelTensor &a, const ModelTensor &b) {
    return a.tensor->type == b.tensor->type &&
           a.tensor->shape == b.tensor->shape &&
           std::memcmp(a.data(), b.data(),
                       static_cast<std::size_t>(a.tensor->bytes())) == 0;
  }

  ModelFiles files;
  WeightNames names;
};

class LlmcSource final : public ForeignSource {
public:
  explicit LlmcSource(const std::string &path)
      : file(path), header(readLlmcHeader(file)) {
    const std::vector<WeightRule> rules = llmcRules(header.layers);
    const std::vector<LlmcTensor> tensors = llmcTensors(header);
    for (std::size_t i = 0; i < rules.size(); ++i)
      add(path, rules[i].name, rules[i],
          {header.type, tensors[i].shape, &file, tensors[i].offset});
    from = Origin();
    from->llmc = header;
  }

  std::string what() const override { return "GPT-2 of llm.c"; }
  std::string model() const override { return "gpt2"; }
  std::int64_t bytes() const override { return file.size(); }
  bool hasOther(const std::string & /*name*/) const override { return false; }
  std::vector<std::byte>
  readOther(const std::string & /*name*/) const override {
    return {};
  }

private:
  MappedFile file;
  LlmcHeader header;
};

} // namespace

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
    return std::make_unique<LlmcSource>(path);
  case WeightOwner::huggingFace:
    break;
  }
  return std::make_unique<HuggingFaceSource>(path);
}

namespace {

bool hasMoments(const WeightSource &source) {
  return std::ranges::any_of(source.tensors(), [](const auto &tensor) {
    return tensor.second.kind != StateKind::weight;
  });
}

void compare(const WeightSource &first, const WeightSource &second,
             WeightDifference &difference) {
  const std::vector<std::byte> a = first.read(difference.name);
  const std::vector<std::byte> b = second.read(difference.name);
  const ElementType typeA = difference.first->type,
                    typeB = difference.second->type;
  if (typeA == typeB && a == b)
    return;
  for (std::int64_t i = 0; i < difference.first->elements(); ++i) {
    const double x = readElement(typeA, a.data(), i);
    const double y = readElement(typeB, b.data(), i);
    difference.size = std::max(difference.size, std::abs(x));
    if (x == y || (std::isnan(x) && std::isnan(y)))
      continue;
    const double distance = std::isfinite(x) && std::isfinite(y)
                                ? std::abs(x - y)
                                : std::numeric_limits<double>::infinity();
    if (difference.elements++ == 0 || distance > difference.largest) {
      difference.largest = distance;
      difference.at = i;
    }
  }
}

} // namespace

WeightComparison compareWeights(const WeightSource &first,
                                const WeightSource &second) {
  WeightComparison comparison;
  comparison.withoutMoments = hasMoments(first) != hasMoments(second);
  std::set<std::string> names;
  for (const WeightSource *source : {&first, &second})
    for (const auto &[name, tensor] : source->tensors())
      if (tensor.kind == StateKind::weight || !comparison.withoutMoments)
        names.insert(name);
  auto find = [](const WeightSource &source, const std::string &name) {
    const auto found = source.tensors().find(name);
    return found == source.tensors().end() ? std::nullopt
                                           : std::optional(found->second);
  };
  for (const std::string &name : names) {
    WeightDifference difference;
    difference.name = name;
    difference.first = find(first, name);
    difference.second = find(second, name);
    const bool both = difference.first && difference.second;
    comparison.tensors += both ? 1 : 0;
    const bool alike =
        both && difference.first->shape == difference.second->shape;
    if (alike)
      compare(first, second, difference);
    if (!alike || difference.elements > 0)
      comparison.differences.push_back(std::move(difference));
  }
  return comparison;
}

} // namespace mtplan::runtime
