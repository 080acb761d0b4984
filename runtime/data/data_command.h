//===- data_command.h - The commands of `mtrun data` ------------*- C++ -*-===//
//
// Each command returns the text for standard output, and throws a DataError for
// an invalid file.
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
  /// Exceeds every token; the default is the largest token + 1. Megatron-LM's
  /// files store uint16 for vocabularies below 65 500, otherwise int32. llm.c's
  /// files store uint16 for vocabularies up to 65 536, otherwise uint32.
  std::optional<std::int64_t> vocabulary;
  /// Is the last token of every document. If this is not set, the source's
  /// documents are kept, or all tokens are one document if the source has none.
  std::optional<std::int32_t> endOfDocument;
};

struct Converted {
  std::int64_t tokens = 0, documents = 0;
  TokenKind kind = TokenKind::uint16;
};

/// Writes `to`, or for Megatron's format `to`.bin and then `to`.idx. The files
/// have the same bytes as files that Megatron-LM and llm.c write. Only
/// Megatron's format keeps documents. With an end token, each document is one
/// sequence that ends with the token; tokens after the last end token are one
/// more document. Without an end token, a source in Megatron's format keeps its
/// sequences, and any other source becomes one sequence.
/// \throws DataError at a token that the format cannot represent
Converted convertTokens(const TokenFile &from, const std::string &to,
                        const ConvertOptions &options);

/// Returns format, sizes and checksums, and the number of samples if a sequence
/// length is given.
std::string dataInfo(const std::string &path, std::optional<TokenFormat> format,
                     std::optional<std::int64_t> sequence);

/// Reads and checks every token, and returns a summary.
/// \param vocabulary  exclusive bound of tokens; none: the type's bound
/// \throws DataError at the first fault
std::string dataCheck(const std::string &path,
                      std::optional<TokenFormat> format,
                      std::optional<std::int64_t> vocabulary);

/// Converts a file, and returns a summary.
/// \throws DataError if the source is one of the files to be written
std::string dataConvert(const std::string &path,
                        std::optional<TokenFormat> format,
                        const std::string &to, const ConvertOptions &options);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_DATA_DATA_COMMAND_H
