//===- foreign_source.cpp - Weights in files of other tools ---------------===//

#include "runtime/exchange/foreign_source.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "runtime/weights/slots.h"

namespace mtplan::runtime {

namespace {

std::string quoted(std::string_view text) {
  return '"' + std::string(text) + '"';
}

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
    takePart(part, size, whole.data(), own.data());
    return own;
  }

protected:
  /// Adds the parameters that a rule finds in a tensor, in equal shares.
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
      refuse("which does not part into the " + std::to_string(count) +
             " equal ones that it holds");
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
    // Label to the tensor that it came from.
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
                          " has them as one");
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

  // Returns the parameters that the files have: a family may have more or
  // fewer. A tensor that may be a parameter or a copy of another is a copy if
  // it has the same bytes.
  std::vector<std::string> labels() const {
    const WeightFamily &family = familyCalled(names.family);
    const Layers layers = layersBelow(names.layers);
    const std::vector<WeightSlot> slots = slotsOf(family, names.prefix, layers);
    std::map<std::string_view, const ModelTensor *> holder; // by label
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

std::unique_ptr<WeightSource> openHuggingFace(const std::string &path) {
  return std::make_unique<HuggingFaceSource>(path);
}

std::unique_ptr<WeightSource> openLlmc(const std::string &path) {
  return std::make_unique<LlmcSource>(path);
}

} // namespace mtplan::runtime
