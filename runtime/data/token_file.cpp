//===- token_file.cpp - Files of tokens in several formats ----------------===//

#include "runtime/data/token_file.h"

#include <array>
#include <filesystem>
#include <vector>

namespace mtplan::runtime {

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {

std::string text(std::int64_t number) { return std::to_string(number); }

/// Copies tokens. Returns the index of the first invalid token, or out.size()
/// if all are valid.
template <typename T>
std::size_t copyTokens(const std::byte *from, std::span<std::int32_t> out,
                       std::int64_t vocabulary) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    T token;
    std::memcpy(&token, from + i * sizeof(T), sizeof(T));
    const auto wide = static_cast<std::int64_t>(token);
    if (wide < 0 || wide >= vocabulary)
      return i;
    out[i] = static_cast<std::int32_t>(token);
  }
  return out.size();
}

template <typename T> std::int64_t tokenAt(const std::byte *from) {
  T token;
  std::memcpy(&token, from, sizeof(T));
  return static_cast<std::int64_t>(token);
}

/// Calls `what.template operator()<T>()` with the C++ type of a token.
template <typename F> auto withType(TokenKind kind, F &&what) {
  switch (kind) {
  case TokenKind::uint8:
  case TokenKind::int8: // as a uint8, a negative int8 is 128 or more: invalid
    return what.template operator()<std::uint8_t>();
  case TokenKind::int16:
    return what.template operator()<std::int16_t>();
  case TokenKind::int32:
    return what.template operator()<std::int32_t>();
  case TokenKind::int64:
    return what.template operator()<std::int64_t>();
  case TokenKind::uint16:
    return what.template operator()<std::uint16_t>();
  case TokenKind::uint32:
    break;
  }
  return what.template operator()<std::uint32_t>();
}

} // namespace

TokenFile TokenFile::open(const std::string &path,
                          std::optional<TokenFormat> format) {
  switch (format ? *format : detectTokenFormat(path)) {
  case TokenFormat::megatron:
    return openMegatron(path);
  case TokenFormat::llmc:
    return openLlmc(path);
  case TokenFormat::uint16:
    return openPlain(path, TokenFormat::uint16, TokenKind::uint16);
  case TokenFormat::uint32:
    return openPlain(path, TokenFormat::uint32, TokenKind::uint32);
  case TokenFormat::text:
    break;
  }
  return openPlain(path, TokenFormat::text, TokenKind::uint8);
}

TokenFile TokenFile::openPlain(const std::string &path, TokenFormat format,
                               TokenKind kind) {
  TokenFile tokens(MappedFile(path), format, kind);
  const std::int64_t size = tokens.file.size(), width = bytesOf(kind);
  if (size % width != 0)
    throw DataError(path, "has " + text(size) + " bytes, no multiple of the " +
                              text(width) + " of a " + nameOf(kind));
  tokens.count = size / width;
  return tokens;
}

TokenFile TokenFile::openLlmc(const std::string &path) {
  MappedFile file(path);
  if (file.size() < kLlmcHeaderBytes)
    throw DataError(path, "has " + text(file.size()) + " bytes, needs " +
                              text(kLlmcHeaderBytes) + " for its header");
  const auto magic = file.read<std::int32_t>(0);
  const auto version = file.read<std::int32_t>(4);
  if (magic != kLlmcGpt2Magic && magic != kLlmcLlama3Magic)
    throw DataError(path, 0,
                    "number " + text(magic) + ", needs " +
                        text(kLlmcGpt2Magic) + " (GPT-2) or " +
                        text(kLlmcLlama3Magic) + " (Llama 3)");
  const bool gpt2 = magic == kLlmcGpt2Magic;
  if (version != (gpt2 ? 1 : 7))
    throw DataError(path, 4,
                    "version " + text(version) + ", can read " +
                        (gpt2 ? "1" : "7"));
  const TokenKind kind = gpt2 ? TokenKind::uint16 : TokenKind::uint32;
  const std::int64_t count = file.read<std::int32_t>(8);
  const std::int64_t needed = kLlmcHeaderBytes + count * bytesOf(kind);
  if (count < 0 || file.size() != needed)
    throw DataError(path, 8,
                    text(count) + " tokens" +
                        (count < 0 ? ""
                                   : " take " + text(needed) +
                                         " bytes, the file has " +
                                         text(file.size())));
  TokenFile tokens(std::move(file), TokenFormat::llmc, kind);
  tokens.firstByte = kLlmcHeaderBytes;
  tokens.count = count;
  return tokens;
}

TokenFile TokenFile::openMegatron(const std::string &path) {
  const auto [bin, idx] = megatronFiles(path);
  MegatronIndex index(idx);
  TokenFile tokens(MappedFile(bin), TokenFormat::megatron, index.kind());
  index.check(tokens.path(), tokens.file.size());
  tokens.count = tokens.file.size() / bytesOf(index.kind());
  tokens.idx.emplace(std::move(index));
  return tokens;
}

std::int64_t TokenFile::sequences() const { return idx ? idx->sequences() : 1; }

std::int64_t TokenFile::documents() const { return idx ? idx->documents() : 1; }

std::int64_t TokenFile::sequenceLength(std::int64_t sequence) const {
  return idx ? idx->length(sequence) : count;
}

std::int64_t TokenFile::sequenceBegin(std::int64_t sequence) const {
  return idx ? idx->offset(sequence) / bytesOf(elements) : 0;
}

void TokenFile::read(std::int64_t first, std::span<std::int32_t> out,
                     std::int64_t vocabulary) const {
  file.confirmSize();
  const std::int64_t bound = std::min(vocabulary, boundOf(elements));
  withType(elements, [&]<typename T>() {
    std::vector<std::byte> copied(out.size() * sizeof(T));
    const std::byte *from = copied.data();
    file.copy(byteOf(first), std::ssize(copied), copied.data());
    const std::size_t good = copyTokens<T>(from, out, bound);
    if (good < out.size())
      throw DataError(path(), byteOf(first + static_cast<std::int64_t>(good)),
                      "token " + text(tokenAt<T>(from + good * sizeof(T))) +
                          ", the vocabulary has " + text(bound) + " (0 to " +
                          text(bound - 1) + ")");
  });
}

//===----------------------------------------------------------------------===//
// Formats
//===----------------------------------------------------------------------===//

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

/// Describes a file format that users pass by mistake.
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
  const std::string start = firstBytes(path, 16);
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
