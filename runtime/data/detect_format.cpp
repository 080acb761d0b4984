//===- detect_format.cpp - What kind of token file is this? ---------------===//

#include <array>
#include <filesystem>
#include <fstream>

#include "runtime/data/token_file.h"

namespace mtplan::runtime {
namespace {

struct Named {
  TokenFormat format;
  std::string_view name;
};
constexpr std::array<Named, 5> kFormats = {{{TokenFormat::text, "text"},
                                            {TokenFormat::megatron, "megatron"},
                                            {TokenFormat::llmc, "llm.c"},
                                            {TokenFormat::uint16, "uint16"},
                                            {TokenFormat::uint32, "uint32"}}};

/// Files that people name by mistake, and what they are.
struct Foreign {
  std::string_view start;
  const char *what;
};
using namespace std::string_view_literals;
constexpr std::array<Foreign, 13> kForeign = {
    {{"\x1f\x8b"sv, "compressed by gzip; unpack it first"},
     {"\x28\xb5\x2f\xfd"sv, "compressed by zstd; unpack it first"},
     {"\xfd"
      "7zXZ"sv,
      "compressed by xz; unpack it first"},
     {"BZh"sv, "compressed by bzip2; unpack it first"},
     {"PK\x03\x04"sv, "a zip archive; unpack it first"},
     {"\x93NUMPY"sv, "a NumPy array; write it with tofile()"},
     {"PAR1"sv, "a Parquet table; write its text or tokens to a plain file"},
     {"\x8a\xd8\x34\x01"sv,
      "llm.c's evaluation set (20240522), not a stream of tokens"},
     {"\xc6\xd7\x34\x01"sv, "a model of llm.c (20240326), not tokens"},
     {"\xc7\xd7\x34\x01"sv, "a debug state of llm.c (20240327), not tokens"},
     {"\xc8\xd7\x34\x01"sv, "a tokenizer of llm.c (20240328), not tokens"},
     {"\x8f\xd8\x34\x01"sv, "an optimizer state of llm.c (20240527), not "
                            "tokens"},
     {"TNTIDX"sv, "an index of the older fairseq format (TNTIDX); convert it "
                  "with Megatron-LM's tools to MMIDIDX"}}};

std::string firstBytes(const std::string &path) {
  std::string start(16, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<std::size_t>(file.gcount()));
  return start;
}

bool startsWithNumber(const std::string &start, std::int32_t number) {
  std::int32_t read = 0;
  if (start.size() < sizeof read)
    return false;
  std::memcpy(&read, start.data(), sizeof read);
  return read == number;
}

} // namespace

std::string_view nameOf(TokenFormat format) {
  for (const Named &each : kFormats)
    if (each.format == format)
      return each.name;
  return "";
}

std::optional<TokenFormat> tokenFormatNamed(std::string_view name) {
  for (const Named &each : kFormats)
    if (each.name == name)
      return each.format;
  return std::nullopt;
}

std::string tokenFormatNames() {
  std::string names;
  for (const Named &each : kFormats)
    names += (names.empty() ? "" : ", ") + std::string(each.name);
  return names;
}

TokenFormat detectTokenFormat(const std::string &path) {
  namespace fs = std::filesystem;
  const fs::path file(path);
  std::error_code ignored;
  if (!fs::exists(file, ignored) && isMegatronIndex(path + ".idx"))
    return TokenFormat::megatron;
  const std::string start = firstBytes(path);
  if (isMegatronIndex(path) ||
      (file.extension() == ".bin" &&
       isMegatronIndex(fs::path(file).replace_extension(".idx").string())))
    return TokenFormat::megatron;
  if (startsWithNumber(start, kLlmcGpt2Magic) ||
      startsWithNumber(start, kLlmcLlama3Magic))
    return TokenFormat::llmc;
  for (const Foreign &each : kForeign)
    if (start.starts_with(each.start))
      throw DataError(path, std::string("is ") + each.what);
  const std::string ending = file.extension().string();
  if (ending == ".u16" || ending == ".uint16")
    return TokenFormat::uint16;
  if (ending == ".u32" || ending == ".uint32")
    return TokenFormat::uint32;
  if (ending == ".bin")
    throw DataError(
        path,
        "has neither an .idx of Megatron-LM beside it nor a "
        "header of llm.c; say with --format whether its tokens are uint16 "
        "or uint32, or that it is text");
  return TokenFormat::text;
}

} // namespace mtplan::runtime
