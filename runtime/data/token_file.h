//===- token_file.h - A file of tokens, whatever its format -----*- C++ -*-===//
//
//   text      any file; its bytes are the tokens 0 .. 255
//   megatron  `.bin` and `.idx` of Megatron-LM, with sequences and documents
//   llmc      karpathy/llm.c: a header of 256 int32, then uint16 (GPT-2) or
//             uint32 (Llama 3)
//   uint16, uint32   tokens without a header
//
// Each format is one array of numbers somewhere in a mapped file. Only
// Megatron's states where sequences begin.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_DATA_TOKEN_FILE_H
#define MTPLAN_RUNTIME_DATA_TOKEN_FILE_H

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/data/files.h"
#include "runtime/data/megatron_index.h"

namespace mtplan::runtime {

/// The size of the header of every file of llm.c: 256 int32, of which the first
/// identifies the kind of file and the second its version.
inline constexpr std::int64_t kLlmcHeaderBytes = 1024;
/// The first numbers of tokens, models and states of llm.c.
inline constexpr std::int32_t kLlmcGpt2Magic = 20240520;   ///< version 1
inline constexpr std::int32_t kLlmcLlama3Magic = 20240801; ///< version 7
inline constexpr std::int32_t kLlmcModelMagic = 20240326;  ///< version 3 or 5
inline constexpr std::int32_t kLlmcStateMagic = 20240527;  ///< version 1

enum class TokenFormat { text, megatron, llmc, uint16, uint32 };

std::string_view nameOf(TokenFormat format);
/// Returns nothing if no format has this name.
std::optional<TokenFormat> tokenFormatNamed(std::string_view name);
/// Returns "text, megatron, ...".
std::string tokenFormatNames();

class TokenFile {
public:
  /// Opens a file. The format is detected from names and content unless it is
  /// given. A Megatron corpus is named by its .bin, its .idx or both without
  /// their ending.
  /// \throws DataError if the file has another format, or an ambiguous one
  static TokenFile open(const std::string &path,
                        std::optional<TokenFormat> format = std::nullopt);

  TokenFormat format() const { return fileFormat; }
  TokenKind kind() const { return elements; }
  /// Returns the file that holds the tokens.
  const std::string &path() const { return file.path(); }
  std::int64_t tokens() const { return count; }
  /// Returns the byte of the file at which a token begins.
  std::int64_t byteOf(std::int64_t token) const {
    return firstByte + token * bytesOf(elements);
  }
  const MappedFile &bytes() const { return file; }

  /// Return the number of runs of tokens that belong together: 1 except for
  /// Megatron's files.
  std::int64_t sequences() const;
  std::int64_t documents() const;
  std::int64_t sequenceLength(std::int64_t sequence) const;
  /// Returns the number of a sequence's first token.
  std::int64_t sequenceBegin(std::int64_t sequence) const;
  /// Returns null except for Megatron's files.
  const MegatronIndex *index() const { return idx ? &*idx : nullptr; }

  /// Reads the tokens from `first` on.
  /// \throws DataError if one is negative or not below `vocabulary`, or if the
  ///         file has become shorter
  void read(std::int64_t first, std::span<std::int32_t> out,
            std::int64_t vocabulary) const;

private:
  TokenFile(MappedFile theFile, TokenFormat theFormat, TokenKind kind)
      : file(std::move(theFile)), fileFormat(theFormat), elements(kind) {}

  static TokenFile openMegatron(const std::string &path);
  static TokenFile openLlmc(const std::string &path);
  /// Opens a file without a header.
  static TokenFile openPlain(const std::string &path, TokenFormat format,
                             TokenKind kind);

  MappedFile file;
  std::optional<MegatronIndex> idx;
  TokenFormat fileFormat = TokenFormat::text;
  TokenKind elements = TokenKind::uint8;
  std::int64_t firstByte = 0;
  std::int64_t count = 0;
};

/// Detects the format of a file by its name and its first bytes.
/// \throws DataError if the file does not hold tokens, or if its format cannot
/// be
///         known
TokenFormat detectTokenFormat(const std::string &path);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_DATA_TOKEN_FILE_H
