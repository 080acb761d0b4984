//===- data_command.h - mtrun data info, check and convert ------*- C++ -*-===//
//
// Each command returns its text for standard output. It throws a DataError for
// a fault of a file.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_DATA_DATA_COMMAND_H
#define MTPLAN_RUNTIME_DATA_DATA_COMMAND_H

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/data/dataset.h"
#include "runtime/data/token_file.h"

namespace mtplan::runtime {

struct ConvertOptions {
  TokenFormat to = TokenFormat::megatron;
  /// The exclusive bound of tokens; none: their largest. Megatron-LM takes
  /// uint16 below 65 500 and otherwise int32, llm.c takes uint16 up to 65 536.
  std::optional<std::int64_t> vocabulary;
  /// The token behind which a document ends; none: one document, or those of
  /// the source.
  std::optional<std::int32_t> endOfDocument;
};

struct Converted {
  std::int64_t tokens = 0, documents = 0;
  TokenKind kind = TokenKind::uint16;
};

/// Writes `to`, for Megatron the pair `to`.bin and `to`.idx, the index last.
/// The bytes are those that Megatron-LM and llm.c write. From Megatron's files
/// to others, documents are lost. In the other direction a corpus becomes one
/// sequence, or with an end token a sequence for each document, which ends
/// behind the token. \throws DataError at a token that the format has no room
/// for
Converted convertTokens(const TokenFile &from, const std::string &to,
                        const ConvertOptions &options);

/// Returns format, sizes and checksums; with a sequence length also the number
/// of samples.
std::string dataInfo(const std::string &path, std::optional<TokenFormat> format,
                     std::optional<std::int64_t> sequence);

/// Reads and checks every token.
/// \param vocabulary  exclusive bound of tokens; none: that of the format
/// \throws DataError at the first fault
std::string dataCheck(const std::string &path,
                      std::optional<TokenFormat> format,
                      std::optional<std::int64_t> vocabulary);

/// Converts a file.
/// \throws DataError if the source is one of the files to be written
std::string dataConvert(const std::string &path,
                        std::optional<TokenFormat> format,
                        const std::string &to, const ConvertOptions &options);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_DATA_DATA_COMMAND_H
