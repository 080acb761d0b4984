//===- convert.cpp - The same tokens in another format --------------------===//

#include "runtime/data/convert.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "runtime/data/whole_file.h"

namespace mtplan::runtime {
namespace {

constexpr std::int64_t kAnyToken = std::int64_t{1} << 31;
constexpr std::int64_t kMegatronShort = 65500; ///< vocabularies below: uint16

std::string text(std::int64_t number) { return std::to_string(number); }

/// Calls `use` with all tokens, a piece at a time.
void forEachPiece(
    const TokenFile &from, std::int64_t vocabulary,
    const std::function<void(std::span<const std::int32_t>)> &use) {
  std::vector<std::int32_t> piece(std::size_t{1} << 16);
  for (std::int64_t first = 0; first < from.tokens();) {
    const auto count = std::min(from.tokens() - first,
                                static_cast<std::int64_t>(piece.size()));
    const std::span tokens(piece.data(), static_cast<std::size_t>(count));
    from.read(first, tokens, vocabulary);
    use(tokens);
    first += count;
  }
}

std::int64_t boundOf(const TokenFile &from) {
  std::int32_t largest = 0;
  forEachPiece(from, kAnyToken, [&](std::span<const std::int32_t> tokens) {
    for (std::int32_t token : tokens)
      largest = std::max(largest, token);
  });
  return std::int64_t{largest} + 1;
}

template <typename T> void writeAs(WholeFile &file, const T &value) {
  file.write(&value, sizeof value);
}

void writeTokens(const TokenFile &from, std::int64_t vocabulary, TokenKind kind,
                 WholeFile &file) {
  forEachPiece(from, vocabulary, [&](std::span<const std::int32_t> tokens) {
    for (std::int32_t token : tokens)
      if (bytesOf(kind) == 1)
        writeAs(file, static_cast<std::uint8_t>(token));
      else if (bytesOf(kind) == 2)
        writeAs(file, static_cast<std::uint16_t>(token));
      else
        writeAs(file, token); // not negative: uint32 and int32 are one
  });
}

/// How Megatron's index is to divide the tokens.
struct Division {
  std::vector<std::int32_t> lengths;
  std::vector<std::int64_t> documents; ///< first sequence of each, and the end
};

void close(const TokenFile &from, std::int64_t length, Division &division) {
  if (length > INT32_MAX)
    throw DataError(from.path(), "a document of " + text(length) +
                                     " tokens, Megatron's index has room for "
                                     "2147483647: say which token ends "
                                     "documents");
  division.lengths.push_back(static_cast<std::int32_t>(length));
  division.documents.push_back(
      static_cast<std::int64_t>(division.lengths.size()));
}

Division divide(const TokenFile &from, const ConvertOptions &options,
                std::int64_t vocabulary) {
  Division division;
  division.documents.push_back(0);
  if (const MegatronIndex *index = from.index();
      index && !options.endOfDocument) {
    for (std::int64_t i = 0; i < index->sequences(); ++i)
      division.lengths.push_back(static_cast<std::int32_t>(index->length(i)));
    for (std::int64_t i = 1; i <= index->documents(); ++i)
      division.documents.push_back(index->firstSequence(i));
    return division;
  }
  std::int64_t length = 0;
  if (options.endOfDocument)
    forEachPiece(from, vocabulary, [&](std::span<const std::int32_t> tokens) {
      for (std::int32_t token : tokens) {
        ++length;
        if (token == *options.endOfDocument) {
          close(from, length, division);
          length = 0;
        }
      }
    });
  else
    length = from.tokens();
  if (length > 0)
    close(from, length, division);
  return division;
}

void writeIndex(const Division &division, TokenKind kind, WholeFile &file) {
  file.write(kMegatronMagic, sizeof kMegatronMagic);
  writeAs(file, std::uint64_t{1});
  writeAs(file, static_cast<std::uint8_t>(megatronCodeOf(kind)));
  writeAs(file, static_cast<std::uint64_t>(division.lengths.size()));
  writeAs(file, static_cast<std::uint64_t>(division.documents.size()));
  for (std::int32_t length : division.lengths)
    writeAs(file, length);
  std::int64_t offset = 0;
  for (std::int32_t length : division.lengths) {
    writeAs(file, offset);
    offset += length * bytesOf(kind);
  }
  for (std::int64_t first : division.documents)
    writeAs(file, first);
}

void writeLlmcHeader(const TokenFile &from, TokenKind kind, WholeFile &file) {
  if (from.tokens() > INT32_MAX)
    throw DataError(from.path(), text(from.tokens()) +
                                     " tokens, a file of llm.c has room for "
                                     "2147483647");
  std::vector<std::int32_t> header(kLlmcHeaderBytes / sizeof(std::int32_t));
  const bool gpt2 = kind == TokenKind::uint16;
  header[0] = gpt2 ? kLlmcGpt2Magic : kLlmcLlama3Magic;
  header[1] = gpt2 ? 1 : 7;
  header[2] = static_cast<std::int32_t>(from.tokens());
  file.write(header.data(), kLlmcHeaderBytes);
}

TokenKind kindFor(TokenFormat format, std::int64_t vocabulary) {
  switch (format) {
  case TokenFormat::text:
    return TokenKind::uint8;
  case TokenFormat::megatron:
    return vocabulary < kMegatronShort ? TokenKind::uint16 : TokenKind::int32;
  case TokenFormat::llmc:
    return vocabulary <= boundOf(TokenKind::uint16) ? TokenKind::uint16
                                                    : TokenKind::uint32;
  case TokenFormat::uint16:
    return TokenKind::uint16;
  case TokenFormat::uint32:
    break;
  }
  return TokenKind::uint32;
}

} // namespace

Converted convertTokens(const TokenFile &from, const std::string &to,
                        const ConvertOptions &options) {
  const std::int64_t known =
      options.vocabulary ? *options.vocabulary : boundOf(from);
  Converted result;
  result.kind = kindFor(options.to, known);
  result.tokens = from.tokens();
  // What does not fit is found by reading, with its place.
  const std::int64_t vocabulary = std::min(known, boundOf(result.kind));

  const bool megatron = options.to == TokenFormat::megatron;
  WholeFile tokens(megatron ? megatronFiles(to)[0] : to);
  if (options.to == TokenFormat::llmc)
    writeLlmcHeader(from, result.kind, tokens);
  writeTokens(from, vocabulary, result.kind, tokens);
  result.documents = 1;
  if (!megatron) {
    tokens.finish();
    return result;
  }
  const Division division = divide(from, options, vocabulary);
  result.documents = static_cast<std::int64_t>(division.documents.size()) - 1;
  WholeFile index(megatronFiles(to)[1]);
  writeIndex(division, result.kind, index);
  tokens.finish();
  index.finish();
  return result;
}

} // namespace mtplan::runtime
