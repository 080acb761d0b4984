//===- token_file.h - Files of tokens in several formats --------*- C++ -*-===//
//
//   text      any file; its bytes are tokens 0 .. 255
//   megatron  `.bin` and `.idx` of Megatron-LM, with sequences and documents
//   llmc      karpathy/llm.c: a header of 256 int32, then uint16 (GPT-2) or
//             uint32 (Llama 3)
//   uint16, uint32   tokens without a header
//
// In each format the tokens are one array of integers in a mapped file.
// Megatron's format also has the boundaries of sequences.
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

/// An llm.c file has a header of this many bytes: 256 int32, starting with a
/// magic number and a version.
inline constexpr std::int64_t kLlmcHeaderBytes = 1024;
inline constexpr std::int32_t kLlmcGpt2Magic = 20240520;   ///< version 1
inline constexpr std::int32_t kLlmcLlama3Magic = 20240801; ///< version 7
inline constexpr std::int32_t kLlmcModelMagic = 20240326;  ///< version 3 or 5

enum class TokenFormat { text, megatron, llmc, uint16, uint32 };

std::string_view nameOf(TokenFormat format);
std::optional<TokenFormat> tokenFormatNamed(std::string_view name);
std::string tokenFormatNames();

class TokenFile {
public:
  /// Opens a file. The format is detected unless it is given. A Megatron corpus
  /// is named by its .bin, its .idx or their common stem.
  /// \throws DataError if the file is invalid, or if its format is ambiguous
  static TokenFile open(const std::string &path,
                        std::optional<TokenFormat> format = std::nullopt);

  TokenFormat format() const { return fileFormat; }
  TokenKind kind() const { return elements; }
  const std::string &path() const { return file.path(); }
  std::int64_t tokens() const { return count; }
  std::int64_t byteOf(std::int64_t token) const {
    return firstByte + token * bytesOf(elements);
  }
  const MappedFile &bytes() const { return file; }

  /// Every file that is not Megatron's has one document with one sequence.
  std::int64_t sequences() const;
  std::int64_t documents() const;
  std::int64_t sequenceLength(std::int64_t sequence) const;
  std::int64_t sequenceBegin(std::int64_t sequence) const;
  const MegatronIndex *index() const { return idx ? &*idx : nullptr; }

  /// Reads out.size() tokens from `first` on.
  /// \throws DataError if a token is negative or not below `vocabulary`, or if
  /// the file has shrunk
  void read(std::int64_t first, std::span<std::int32_t> out,
            std::int64_t vocabulary) const;

private:
  TokenFile(MappedFile theFile, TokenFormat theFormat, TokenKind kind)
      : file(std::move(theFile)), fileFormat(theFormat), elements(kind) {}

  static TokenFile openMegatron(const std::string &path);
  static TokenFile openLlmc(const std::string &path);
  static TokenFile openPlain(const std::string &path, TokenFormat format,
                             TokenKind kind);

  MappedFile file;
  std::optional<MegatronIndex> idx;
  TokenFormat fileFormat = TokenFormat::text;
  TokenKind elements = TokenKind::uint8;
  std::int64_t firstByte = 0;
  std::int64_t count = 0;
};

/// Detects the format of a file from its name and its first bytes.
/// \throws DataError if the file has a foreign format, or if its format is
/// ambiguous
TokenFormat detectTokenFormat(const std::string &path);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_DATA_TOKEN_FILE_H
