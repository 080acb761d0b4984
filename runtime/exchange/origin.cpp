//===- origin.cpp - Describes imported files of weights -------------------===//

#include "runtime/exchange/origin.h"

#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <span>
#include <stdexcept>

#include "base/json_events.h"

namespace mtplan::runtime {

namespace fs = std::filesystem;

namespace {

constexpr const char *kIndex = "model.safetensors.index.json",
                     *kConfig = "config.json", *kLlmc = "llm.c model";
// A metadata key consists of one of these prefixes and a file's name. The value
// of a kHeader key is the text of the file's header. The value of a kBytes key
// is the size of the file in bytes.
constexpr std::string_view kHeader = "header of ", kBytes = "bytes of ";
constexpr std::int64_t kLengthBytes = 8;

std::string textOf(const MappedFile &file, std::int64_t from,
                   std::int64_t bytes) {
  return {reinterpret_cast<const char *>(file.at(from, bytes)),
          static_cast<std::size_t>(bytes)};
}

// Returns the text of a file, or none if the file does not exist. Throws if the
// text is not UTF-8, because metadata of safetensors must be UTF-8.
std::optional<std::string> textIfThere(const fs::path &path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error))
    return std::nullopt;
  const MappedFile file(path);
  std::string text = textOf(file, 0, file.size());
  try {
    (void)base::jsonString(text, base::JsonEscapes::needed);
  } catch (const std::invalid_argument &) {
    throw DataError(path, "is not UTF-8");
  }
  return text;
}

SafetensorsHeader parsed(const std::string &file, const std::string &text,
                         std::int64_t bytes) {
  std::string start(kLengthBytes, '\0');
  const std::uint64_t length = text.size();
  std::memcpy(start.data(), &length, sizeof(length));
  start += text;
  return parseHeader(file, std::as_bytes(std::span<const char>(start)), bytes);
}

std::int64_t numberIn(const std::string &file, const std::string &name,
                      std::string_view text) {
  std::int64_t number = -1;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0)
    throw DataError(file, "metadata '" + name + "' is '" + std::string(text) +
                              "', needs whole numbers");
  return number;
}

std::string llmcText(const LlmcHeader &header) {
  std::string text;
  for (const std::int64_t number :
       {bytesOf(header.type), header.positions, header.vocabulary,
        header.layers, header.heads, header.channels, header.paddedVocabulary})
    text += (text.empty() ? "" : " ") + std::to_string(number);
  return text;
}

LlmcHeader readLlmc(const std::string &file, std::string_view text) {
  std::array<std::int64_t, 7> numbers{};
  for (std::int64_t &number : numbers) {
    const std::string_view word = text.substr(0, text.find(' '));
    number = numberIn(file, kLlmc, word);
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  return {numbers[0] == 2 ? ElementType::bf16 : ElementType::f32,
          numbers[1],
          numbers[2],
          numbers[3],
          numbers[4],
          numbers[5],
          numbers[6]};
}

} // namespace

std::vector<std::string> Origin::names() const {
  std::vector<std::string> names;
  for (const OriginFile &file : files)
    for (const SafeTensor &tensor : file.header.tensors)
      names.push_back(tensor.name);
  return names;
}

Origin originOf(const ModelFiles &files, const std::string &path) {
  Origin origin;
  for (const auto &file : files.files())
    origin.files.push_back({fs::path(file->bytes.path()).filename(),
                            textOf(file->bytes, kLengthBytes,
                                   file->header.dataStart - kLengthBytes),
                            file->header});
  const fs::path folder =
      fs::is_directory(path) ? fs::path(path) : fs::path(path).parent_path();
  if (files.index())
    origin.index =
        textIfThere(fs::is_directory(path) ? folder / kIndex : fs::path(path));
  origin.config = textIfThere(folder / kConfig);
  return origin;
}

std::map<std::string, std::string> originTexts(const Origin &origin) {
  std::map<std::string, std::string> texts;
  for (const OriginFile &file : origin.files) {
    std::int64_t end = 0;
    for (const SafeTensor &tensor : file.header.tensors)
      end = std::max(end, tensor.end);
    texts[std::string(kHeader) + file.name] = file.text;
    texts[std::string(kBytes) + file.name] =
        std::to_string(file.header.dataStart + end);
  }
  if (origin.index)
    texts[kIndex] = *origin.index;
  if (origin.config)
    texts[kConfig] = *origin.config;
  if (origin.llmc)
    texts[kLlmc] = llmcText(*origin.llmc);
  return texts;
}

Origin readOrigin(const std::string &file,
                  const std::map<std::string, std::string> &texts) {
  Origin origin;
  for (const auto &[key, text] : texts) {
    if (!key.starts_with(kHeader))
      continue;
    OriginFile &made = origin.files.emplace_back();
    made.name = key.substr(kHeader.size());
    made.text = text;
    if (made.name.empty() || made.name.find('/') != std::string::npos)
      throw DataError(file, "metadata '" + key + "' names no file");
    const std::string bytesKey = std::string(kBytes) + made.name;
    const auto bytes = texts.find(bytesKey);
    if (bytes == texts.end())
      throw DataError(file, "has no metadata '" + bytesKey + "'");
    std::string where = file;
    where.append(": ").append(key);
    made.header = parsed(where, text, numberIn(file, bytesKey, bytes->second));
  }
  if (const auto found = texts.find(kIndex); found != texts.end())
    origin.index = found->second;
  if (const auto found = texts.find(kConfig); found != texts.end())
    origin.config = found->second;
  if (const auto found = texts.find(kLlmc); found != texts.end())
    origin.llmc = readLlmc(file, found->second);
  return origin;
}

} // namespace mtplan::runtime
