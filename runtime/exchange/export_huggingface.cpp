//===- export_huggingface.cpp - Exports weights as safetensors ------------===//

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "runtime/checkpoint/durable_file.h"
#include "runtime/exchange/export.h"
#include "runtime/exchange/made_tensor.h"
#include "runtime/exchange/origin_rules.h"

namespace mtplan::runtime {

namespace fs = std::filesystem;

namespace {

constexpr const char *kOneFile = "model.safetensors",
                     *kIndexFile = "model.safetensors.index.json",
                     *kConfigFile = "config.json";

struct OutputTensor {
  SafeTensor tensor;
  std::optional<WeightRule> rule; ///< none: a tensor of the original
};

struct OutputFile {
  std::string name, start; ///< everything before the data
  SafetensorsHeader header;
  std::map<std::string, WeightRule> rules;
};

struct Output {
  std::vector<OutputFile> files;
  std::map<std::string, std::string> texts; ///< other files
  const WeightSource *others = nullptr; ///< provides tensors that no rule makes
};

// Returns the length of a header and its text.
std::string startOf(const std::string &text) {
  std::string start(8, '\0');
  const std::uint64_t length = text.size();
  std::memcpy(start.data(), &length, sizeof(length));
  return start + text;
}

// Adds an index with the metadata and "total_parameters".
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

// Fills files like save_pretrained: tensors go to a file in the network's order
// until the next would make it too large; one that is too large gets a file of
// its own.
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

// Writes weights that came from other files into new ones: their configuration
// stays valid, unless another family is asked for.
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

// Returns the final path of the folder; a link to an empty folder is followed.
std::string freeFolder(const std::string &folder) {
  fs::path path(folder);
  if (!path.has_filename()) // "out/"
    path = path.parent_path();
  if (!fs::exists(fs::symlink_status(path)))
    return path;
  if (!fs::is_directory(path) || !fs::is_empty(path))
    throw WeightError(folder + ": is there already, and not an empty folder; "
                               "name one that is not there");
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
    throw WeightError("it is to be like a " + like.what() +
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

} // namespace mtplan::runtime
