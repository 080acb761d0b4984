//===- export_llmc.cpp - Exports weights as a model of llm.c --------------===//

#include <algorithm>
#include <filesystem>
#include <limits>
#include <set>

#include "runtime/checkpoint/durable_file.h"
#include "runtime/exchange/export.h"
#include "runtime/exchange/made_tensor.h"
#include "runtime/exchange/origin_rules.h"

namespace mtplan::runtime {

namespace fs = std::filesystem;

namespace {

// Checks that the model has all parameters of llm.c's format and no others.
void expectGpt2(const WeightSource &source,
                const std::vector<WeightRule> &rules) {
  std::set<std::string> theirs;
  for (const WeightRule &rule : rules)
    theirs.insert(rule.labels.begin(), rule.labels.end());
  const std::vector<std::string> ours = parametersOf(source);
  for (const std::string &label : ours)
    if (!theirs.contains(label))
      throw WeightError("llm.c has GPT-2 with a tied head alone, and no "
                        "parameter \"" +
                        label + "\"");
  for (const std::string &label : theirs)
    if (!std::ranges::binary_search(ours, label))
      throw WeightError("llm.c has GPT-2 with a tied head alone, whose \"" +
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
    throw WeightError("how many heads the model has is not in its weights, "
                      "and llm.c's file says it: it needs to be given");
  if (header.channels % header.heads != 0)
    throw WeightError(std::to_string(header.heads) + " heads do not part " +
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
                      ": is there already; name a file that is not there");
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
      // Padding rows of zeros.
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
