//===- token_file.h - A file of tokens, whatever its format -----*- C++ -*-===//
//
//   text      any file; its bytes are the tokens 0 .. 255
//   megatron  `.bin` and `.idx` of Megatron-LM, with sequences and documents
//   llmc      karpathy/llm.c: a header of 256 int32, then uint16 (GPT-2) or
//             uint32 (Llama 3)
//   uint16, uint32   tokens without a header
//
// All are one array of numbers somewhere in a mapped file; only Megatron's says
// where sequences begin.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_DATA_TOKEN_FILE_H
#define MTPLAN_RUNTIME_DATA_TOKEN_FILE_H

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/data/llmc_header.h"
#include "runtime/data/mapped_file.h"
#include "runtime/data/megatron_index.h"
#include "runtime/data/token_kind.h"

namespace mtplan::runtime {

enum class TokenFormat { text, megatron, llmc, uint16, uint32 };

std::string_view nameOf(TokenFormat format);
/// Nothing if no format is called so.
std::optional<TokenFormat> tokenFormatNamed(std::string_view name);
/// "text, megatron, ..."
std::string tokenFormatNames();

class TokenFile {
public:
  /// Without a format it is found from names and content; of a Megatron corpus
  /// the .bin, the .idx or both without their ending may be named.
  /// \throws DataError if it is no such file, or could be two
  static TokenFile open(const std::string &path,
                        std::optional<TokenFormat> format = std::nullopt);

  TokenFormat format() const { return fileFormat; }
  TokenKind kind() const { return elements; }
  /// The file that the tokens are in.
  const std::string &path() const { return file.path(); }
  std::int64_t tokens() const { return count; }
  /// Bytes of the tokens in the file: [firstByte, firstByte + tokens width).
  std::int64_t byteOf(std::int64_t token) const {
    return firstByte + token * bytesOf(elements);
  }
  const MappedFile &bytes() const { return file; }

  /// Runs of tokens that belong together, one but for Megatron's.
  std::int64_t sequences() const;
  std::int64_t documents() const;
  std::int64_t sequenceLength(std::int64_t sequence) const;
  /// Number of its first token.
  std::int64_t sequenceBegin(std::int64_t sequence) const;
  /// Null but for Megatron's.
  const MegatronIndex *index() const { return idx ? &*idx : nullptr; }

  /// The tokens from `first` on.
  /// \throws DataError if one is negative or not below `vocabulary`, or if the
  ///         file has become shorter
  void read(std::int64_t first, std::span<std::int32_t> out,
            std::int64_t vocabulary) const;

private:
  TokenFile(MappedFile theFile, TokenFormat theFormat, TokenKind kind)
      : file(std::move(theFile)), fileFormat(theFormat), elements(kind) {}

  static TokenFile openMegatron(const std::string &path);
  static TokenFile openLlmc(const std::string &path);
  /// Every byte a part of a token.
  static TokenFile openPlain(const std::string &path, TokenFormat format,
                             TokenKind kind);

  MappedFile file;
  std::optional<MegatronIndex> idx;
  TokenFormat fileFormat = TokenFormat::text;
  TokenKind elements = TokenKind::uint8;
  std::int64_t firstByte = 0;
  std::int64_t count = 0;
};

/// What a file is, by its name and its first bytes.
/// \throws DataError if it is something that does not hold tokens, or if only
///         the person who wrote it knows
TokenFormat detectTokenFormat(const std::string &path);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_DATA_TOKEN_FILE_H
