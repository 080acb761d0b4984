//===- export.cpp - Exports weights to files of other tools ---------------===//

#include "runtime/exchange/export.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>
#include <utility>

#include "runtime/checkpoint/durable_file.h"
#include "runtime/exchange/weight_part.h"

namespace mtplan::runtime {

//===----------------------------------------------------------------------===//
// Safetensors of Transformers
//===----------------------------------------------------------------------===//

namespace fs = std::filesystem;

namespace {

constexpr const char *kOneFile = "model.safetensors",
                     *kIndexFile = "model.safetensors.index.json",
                     *kConfigFile = "config.json";

struct OutputFile {
  /// `start` holds the bytes of the file before the tensors' data.
  std::string name, start;
  SafetensorsHeader header;
  std::map<std::string, WeightRule> rules;
};

struct Output {
  std::vector<OutputFile> files;
  std::map<std::string, std::string> texts; ///< texts of other files, by name
  const WeightSource *others = nullptr; ///< provides the tensors without a rule
};

std::string startOf(const std::string &text) {
  std::string start(8, '\0');
  const std::uint64_t length = text.size();
  std::memcpy(start.data(), &length, sizeof(length));
  return start + text;
}

void addIndex(Output &output, std::map<std::string, std::string> metadata) {
  ShardIndex index;
  index.otherMetadata = std::move(metadata);
  index.totalSize = 0;
  for (const OutputFile &file : output.files)
    for (const SafeTensor &tensor : file.header.tensors) {
      index.totalSize += tensor.bytes();
      index.weightMap[tensor.name] = file.name;
    }
  output.texts[kIndexFile] = writeIndex(index);
}

class LikeOrigin {
public:
  LikeOrigin(const WeightSource &theSource, const WeightSource &theLike,
             const ExportOptions &theOptions, Exported &theExported)
      : source(theSource), like(theLike), origin(*like.origin()),
        options(theOptions), exported(theExported),
        rules(rulesOf(origin, source)) {}

  Output output() {
    Output output;
    output.others = &like;
    for (const OriginFile &file : origin.files)
      output.files.push_back(fileLike(file));
    if (origin.index && unchanged)
      output.texts[kIndexFile] = *origin.index;
    else if (origin.index)
      addIndex(output, parseIndex(kIndexFile, *origin.index).otherMetadata);
    if (origin.config)
      output.texts[kConfigFile] = *origin.config;
    return output;
  }

private:
  OutputFile fileLike(const OriginFile &file) {
    OutputFile made;
    made.name = file.name;
    made.header.metadata = file.header.metadata;
    for (const SafeTensor &was : file.header.tensors) {
      const auto rule = rules.find(was.name);
      if (rule == rules.end() && !like.hasOther(was.name)) {
        exported.leftOut.push_back(was.name);
        continue;
      }
      SafeTensor tensor = was;
      if (rule != rules.end()) {
        made.rules[was.name] = rule->second;
        tensor.shape = madeShape(source, rule->second);
        if (options.type)
          tensor.type = safetensorsType(*options.type);
        if (!floatNamed(tensor.type))
          throw WeightError("tensor \"" + was.name + "\" was in " + was.type +
                            ", which weights are not rounded to; a type is "
                            "needed");
      }
      made.header.tensors.push_back(std::move(tensor));
    }
    if (made.header.tensors == file.header.tensors) {
      made.header = file.header;
      made.start = startOf(file.text);
      return made;
    }
    unchanged = false;
    sortAsReference(made.header.tensors);
    made.start = layOut(made.header);
    return made;
  }

  const WeightSource &source, &like;
  const Origin &origin;
  const ExportOptions &options;
  Exported &exported;
  const std::map<std::string, WeightRule> rules;
  bool unchanged = true;
};

// Distributes tensors over files as save_pretrained does. A file takes tensors
// in the network's order until the next tensor would exceed the limit. A tensor
// above the limit gets a file of its own.
Output usual(const WeightSource &source, const ExportOptions &options) {
  Output output;
  const std::int64_t most = options.shardBytes.value_or(kShardBytes);
  std::int64_t elements = 0, filled = 0;
  OutputFile next;
  auto put = [](OutputFile &file, const WeightRule &rule, SafeTensor tensor) {
    file.rules[rule.name] = rule;
    file.header.tensors.push_back(std::move(tensor));
  };
  for (const WeightRule &rule : usualRules(source, options.family)) {
    const SourceTensor &first = source.tensors().at(rule.labels[0]);
    SafeTensor tensor;
    tensor.name = rule.name;
    tensor.type = safetensorsType(options.type.value_or(first.type));
    tensor.shape = madeShape(source, rule);
    const std::int64_t bytes = bytesOf(tensor.type, tensor.shape);
    elements += bytes * 8 / bitsOf(tensor.type);
    if (bytes > most) {
      put(output.files.emplace_back(), rule, std::move(tensor));
      continue;
    }
    if (filled + bytes > most) {
      output.files.push_back(std::exchange(next, {}));
      filled = 0;
    }
    filled += bytes;
    put(next, rule, std::move(tensor));
  }
  if (!next.rules.empty())
    output.files.push_back(std::move(next));
  const auto count = static_cast<std::int64_t>(output.files.size());
  for (std::int64_t i = 0; i < count; ++i) {
    OutputFile &file = output.files[static_cast<std::size_t>(i)];
    file.name = count == 1 ? kOneFile : shardName(i + 1, count);
    file.header.metadata = {{"format", "pt"}}; // some readers require it
    sortAsReference(file.header.tensors);
    file.start = layOut(file.header);
  }
  if (count > 1)
    addIndex(output, {{"total_parameters", std::to_string(elements)}});
  return output;
}

// Lays out imported weights in new files. Keeps the original config.json unless
// a family is requested, because the file may be invalid for that family.
Output usualAnew(const WeightSource &source, const ExportOptions &options,
                 Exported &exported) {
  Output output = usual(source, options);
  const Origin &origin = *source.origin();
  if (origin.config && options.family.empty())
    output.texts[kConfigFile] = *origin.config;
  const std::map<std::string, WeightRule> rules = rulesOf(origin, source);
  for (const std::string &name : origin.names())
    if (!rules.contains(name))
      exported.leftOut.push_back(name);
  return output;
}

// Returns the path of the folder to create. Follows a link to an empty folder.
std::string freeFolder(const std::string &folder) {
  fs::path path(folder);
  if (!path.has_filename()) // "out/"
    path = path.parent_path();
  if (!fs::exists(fs::symlink_status(path)))
    return path;
  if (!fs::is_directory(path) || !fs::is_empty(path))
    throw WeightError(folder + ": is there already and is not an empty folder; "
                               "name a folder that does not exist");
  return fs::canonical(path);
}

void write(const WeightSource &source, const Output &output,
           const std::string &folder, Exported &exported) {
  auto named = [&](const std::string &name, std::int64_t bytes) {
    exported.files.push_back(name);
    exported.bytes += bytes;
    return folder + "/" + name;
  };
  for (const OutputFile &file : output.files) {
    const auto dataStart = static_cast<std::int64_t>(file.start.size());
    const std::int64_t end =
        dataStart +
        (file.header.tensors.empty()
             ? 0
             : std::ranges::max(file.header.tensors, {}, &SafeTensor::end).end);
    DurableFile out(named(file.name, end), DurableFile::Open::create);
    out.reserve(end);
    out.writeAt(0, file.start.data(), file.start.size());
    for (const SafeTensor &tensor : file.header.tensors) {
      const auto rule = file.rules.find(tensor.name);
      const std::vector<std::byte> bytes =
          rule == file.rules.end()
              ? output.others->readOther(tensor.name)
              : madeTensor(source, rule->second, *floatNamed(tensor.type));
      out.writeAt(dataStart + tensor.begin, bytes.data(), bytes.size());
      exported.tensors += 1;
    }
    out.finish();
  }
  for (const auto &[name, text] : output.texts)
    replaceFile(named(name, static_cast<std::int64_t>(text.size())), text);
}

} // namespace

Exported exportHuggingFace(const WeightSource &source,
                           const std::string &folder,
                           const ExportOptions &options) {
  const std::string whole = freeFolder(folder);
  Exported exported;
  const WeightSource &like = options.like ? *options.like : source;
  const bool hasOrigin = like.origin() && !like.origin()->files.empty();
  if (options.like && !hasOrigin)
    throw WeightError("the export is to have the format of a " + like.what() +
                      ", which has no files of Hugging Face's");
  const bool anew = !options.family.empty() || options.shardBytes;
  const Output output =
      !hasOrigin ? usual(source, options)
      : options.like || !anew
          ? LikeOrigin(source, like, options, exported).output()
          : usualAnew(source, options, exported);
  exported.hasConfig = output.texts.contains(kConfigFile);
  const std::string partial = whole + ".partial";
  removeFolder(partial);
  try {
    makeFolder(partial);
    write(source, output, partial, exported);
    syncFolder(partial);
    renameFolder(partial, whole);
  } catch (...) {
    removeFolder(partial);
    throw;
  }
  return exported;
}

//===----------------------------------------------------------------------===//
// Models of llm.c
//===----------------------------------------------------------------------===//

namespace {

void expectGpt2(const WeightSource &source,
                const std::vector<WeightRule> &rules) {
  std::set<std::string> theirs;
  for (const WeightRule &rule : rules)
    theirs.insert(rule.labels.begin(), rule.labels.end());
  const std::vector<std::string> ours = parametersOf(source);
  for (const std::string &label : ours)
    if (!theirs.contains(label))
      throw WeightError(
          "llm.c supports only GPT-2 with a tied head, which has no "
          "parameter \"" +
          label + "\"");
  for (const std::string &label : theirs)
    if (!std::ranges::binary_search(ours, label))
      throw WeightError("llm.c supports only GPT-2 with a tied head, whose \"" +
                        label + "\" the model lacks");
}

LlmcHeader headerOf(const WeightSource &source, std::int64_t layers,
                    const ExportOptions &options) {
  const WeightSource &like = options.like ? *options.like : source;
  LlmcHeader header;
  if (like.origin() && like.origin()->llmc)
    header = *like.origin()->llmc;
  else
    header.type = source.tensors().at("wte.weight").type;
  if (options.type)
    header.type = *options.type;
  if (header.type != ElementType::f32 && header.type != ElementType::bf16)
    throw WeightError("the weights are in " + safetensorsType(header.type) +
                      "; llm.c has float and bf16: name one of the two");
  if (options.heads)
    header.heads = *options.heads;
  const std::vector<std::int64_t> &tokens =
      source.tensors().at("wte.weight").shape;
  const std::vector<std::int64_t> &positions =
      source.tensors().at("wpe.weight").shape;
  header.layers = layers;
  header.vocabulary = tokens.at(0);
  header.channels = tokens.at(1);
  header.positions = positions.at(0);
  if (header.paddedVocabulary < header.vocabulary)
    header.paddedVocabulary =
        (header.vocabulary + kLlmcRows - 1) / kLlmcRows * kLlmcRows;
  if (header.heads < 1)
    throw WeightError("the weights do not determine the number of heads, which "
                      "llm.c's file needs: name it");
  if (header.channels % header.heads != 0)
    throw WeightError(std::to_string(header.heads) + " heads do not divide " +
                      std::to_string(header.channels) + " channels");
  if (std::max({header.paddedVocabulary, header.positions, header.channels}) >
      std::numeric_limits<std::int32_t>::max())
    throw WeightError("a size of the model does not fit into the 32 bits of "
                      "llm.c's header");
  return header;
}

void expectFree(const std::string &file) {
  if (!fs::path(file).has_filename())
    throw WeightError(file + ": names a folder; a model of llm.c is a file");
  if (fs::exists(fs::symlink_status(file)))
    throw WeightError(file +
                      ": is there already; name a file that does not exist");
}

} // namespace

Exported exportLlmc(const WeightSource &source, const std::string &file,
                    const ExportOptions &options) {
  expectFree(file);
  const std::int64_t layers = layersOf(source);
  const std::vector<WeightRule> rules = llmcRules(layers);
  expectGpt2(source, rules);
  const LlmcHeader header = headerOf(source, layers, options);
  const std::vector<LlmcTensor> tensors = llmcTensors(header);
  Exported exported{{file},
                    false,
                    static_cast<std::int64_t>(tensors.size()),
                    llmcBytes(header),
                    {}};
  const std::string partial = file + kNext;
  if (const fs::path parent = fs::path(file).parent_path(); !parent.empty())
    makeFolder(parent);
  try {
    DurableFile out(partial, DurableFile::Open::create);
    out.reserve(exported.bytes);
    const auto words = llmcHeaderWords(header);
    out.writeAt(0, words.data(), sizeof(words));
    for (std::size_t i = 0; i < rules.size(); ++i) {
      const std::vector<std::int64_t> shape = madeShape(source, rules[i]);
      if (shape != tensors[i].shape)
        throw WeightError("llm.c has " + rules[i].name + " as " +
                          shapeWords(tensors[i].shape) + ", the model as " +
                          shapeWords(shape));
      std::vector<std::byte> bytes = madeTensor(source, rules[i], header.type);
      // The bytes of the rows beyond the vocabulary are zero.
      bytes.resize(static_cast<std::size_t>(tensors[i].room));
      out.writeAt(tensors[i].offset, bytes.data(), bytes.size());
    }
    out.finish();
    renameFolder(partial, file);
  } catch (...) {
    removeFolder(partial);
    throw;
  }
  return exported;
}

} // namespace mtplan::runtime
