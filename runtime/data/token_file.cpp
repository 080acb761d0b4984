//===- token_file.cpp - A file of tokens, whatever its format -------------===//

#include "runtime/data/token_file.h"

#include <vector>

namespace mtplan::runtime {
namespace {

std::string text(std::int64_t number) { return std::to_string(number); }

/// Copies tokens and returns the place of the first that is out of bounds, or
/// their number.
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

/// Calls `what.template operator()<T>()` for the type of one token.
template <typename F> auto withType(TokenKind kind, F &&what) {
  switch (kind) {
  case TokenKind::uint8:
  case TokenKind::int8: // a negative one is above the bound of 128
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

} // namespace mtplan::runtime
