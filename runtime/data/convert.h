//===- convert.h - The same tokens in another format ------------*- C++ -*-===//
//
// Byte for byte what Megatron-LM and llm.c write. Between Megatron's files and
// the others, documents get lost or appear: a corpus without documents becomes
// one sequence, or with an end token a sequence for each document, which ends
// behind it.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_DATA_CONVERT_H
#define MTPLAN_RUNTIME_DATA_CONVERT_H

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/data/token_file.h"

namespace mtplan::runtime {

struct ConvertOptions {
  TokenFormat to = TokenFormat::megatron;
  /// Tokens must be below. Megatron-LM takes uint16 below 65 500 and int32
  /// else, llm.c uint16 up to 65 536; unknown: what the tokens need.
  std::optional<std::int64_t> vocabulary;
  /// Token behind which a document ends; none: one document, or the source's.
  std::optional<std::int32_t> endOfDocument;
};

struct Converted {
  std::int64_t tokens = 0, documents = 0;
  TokenKind kind = TokenKind::uint16;
};

/// Writes `to`, for Megatron the pair `to`.bin and `to`.idx, the index last.
/// \throws DataError at a token that the format has no room for
Converted convertTokens(const TokenFile &from, const std::string &to,
                        const ConvertOptions &options);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_DATA_CONVERT_H
