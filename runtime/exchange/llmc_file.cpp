//===- llmc_file.cpp - The model file of llm.c ----------------------------===//

#include "runtime/exchange/llmc_file.h"

#include <map>

#include "runtime/weights/weight_rules.h"

namespace mtplan::runtime {

namespace {

constexpr std::int32_t kFloatVersion = 3, kBf16Version = 5;

// Returns the number of elements of a layer's twelve tensors: 12 C^2 + 13 C for
// C channels.
__int128 layerElements(__int128 channels) {
  return channels * (12 * channels + 13);
}

__int128 elementsOf(const LlmcHeader &header) {
  const __int128 channels = header.channels;
  return channels * (__int128{header.paddedVocabulary} + header.positions + 2) +
         header.layers * layerElements(channels);
}

std::vector<std::int64_t> shapeOf(const std::string &kind,
                                  const LlmcHeader &header) {
  const std::int64_t width = header.channels;
  const std::map<std::string, std::vector<std::int64_t>> shapes = {
      {"wte", {header.vocabulary, width}},
      {"wpe", {header.positions, width}},
      {"qkvw", {3 * width, width}},
      {"qkvb", {3 * width}},
      {"attprojw", {width, width}},
      {"fcw", {4 * width, width}},
      {"fcb", {4 * width}},
      {"fcprojw", {width, 4 * width}}};
  const auto found = shapes.find(kind);
  return found == shapes.end() ? std::vector{width} : found->second;
}

} // namespace

LlmcHeader readLlmcHeader(const MappedFile &file) {
  if (file.size() < kLlmcHeaderBytes)
    throw DataError(file.path(),
                    "has " + std::to_string(file.size()) +
                        " bytes; the header of an llm.c model alone has " +
                        std::to_string(kLlmcHeaderBytes));
  auto word = [&](std::int64_t index) {
    return file.read<std::int32_t>(index * 4);
  };
  auto refuse = [&](std::int64_t index, const std::string &field,
                    const std::string &needs) {
    throw DataError(file.path(),
                    "header word " + std::to_string(index) + ", " + field +
                        ", is " + std::to_string(word(index)) + "; " + needs);
  };
  if (word(0) != kLlmcModelMagic)
    refuse(0, "the magic number",
           "an llm.c model has " + std::to_string(kLlmcModelMagic));
  const std::int32_t version = word(1);
  if (version != kFloatVersion && version != kBf16Version)
    refuse(1, "the version", "known are 3 (float) and 5 (bf16)");
  LlmcHeader header;
  header.type = version == kFloatVersion ? ElementType::f32 : ElementType::bf16;
  auto size = [&](std::int64_t index, const std::string &field) {
    if (word(index) < 1)
      refuse(index, field, "it must be at least 1");
    return std::int64_t{word(index)};
  };
  header.positions = size(2, "the longest sequence");
  header.vocabulary = size(3, "the vocabulary");
  header.layers = size(4, "the number of layers");
  header.heads = size(5, "the number of heads");
  header.channels = size(6, "the number of channels");
  header.paddedVocabulary = size(7, "the padded vocabulary");
  if (header.paddedVocabulary < header.vocabulary)
    refuse(7, "the padded vocabulary",
           "it must be at least the vocabulary of " +
               std::to_string(header.vocabulary));
  if (header.channels % header.heads != 0)
    refuse(5, "the number of heads",
           "it must divide the " + std::to_string(header.channels) +
               " channels");
  // 128 bits hold all products, because the header's fields have 32 bits.
  const __int128 bytes =
      kLlmcHeaderBytes + elementsOf(header) * bytesOf(header.type);
  if (bytes != file.size())
    throw DataError(
        file.path(),
        "has " + std::to_string(file.size()) + " bytes; " +
            (bytes > INT64_MAX
                 ? "more than 2^63"
                 : std::to_string(static_cast<std::int64_t>(bytes))) +
            " are needed for " + std::to_string(header.layers) + " layers of " +
            std::to_string(header.channels) + " channels and " +
            std::to_string(header.paddedVocabulary) + " tokens");
  return header;
}

std::array<std::int32_t, kLlmcHeaderBytes / 4>
llmcHeaderWords(const LlmcHeader &header) {
  auto word = [](std::int64_t value) {
    return static_cast<std::int32_t>(value);
  };
  return {kLlmcModelMagic,
          header.type == ElementType::f32 ? kFloatVersion : kBf16Version,
          word(header.positions),
          word(header.vocabulary),
          word(header.layers),
          word(header.heads),
          word(header.channels),
          word(header.paddedVocabulary)};
}

std::vector<LlmcTensor> llmcTensors(const LlmcHeader &header) {
  std::vector<LlmcTensor> tensors;
  std::int64_t offset = kLlmcHeaderBytes;
  for (const WeightRule &rule : llmcRules(header.layers)) {
    const std::string kind = rule.name.substr(0, rule.name.find('.'));
    LlmcTensor tensor{rule.name, shapeOf(kind, header), offset, 0};
    tensor.room = bytesOf(header.type);
    for (const std::int64_t size : tensor.shape)
      tensor.room *= size;
    if (kind == "wte")
      tensor.room = tensor.room / header.vocabulary * header.paddedVocabulary;
    offset += tensor.room;
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

std::int64_t llmcBytes(const LlmcHeader &header) {
  return kLlmcHeaderBytes +
         static_cast<std::int64_t>(elementsOf(header)) * bytesOf(header.type);
}

} // namespace mtplan::runtime
