//===- token_kind.h - How one token is stored -------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_DATA_TOKEN_KIND_H
#define MTPLAN_RUNTIME_DATA_TOKEN_KIND_H

#include <cstdint>
#include <string>

namespace mtplan::runtime {

enum class TokenKind { uint8, int8, int16, int32, int64, uint16, uint32 };

/// Of one token.
constexpr std::int64_t bytesOf(TokenKind kind) {
  switch (kind) {
  case TokenKind::uint8:
  case TokenKind::int8:
    return 1;
  case TokenKind::int16:
  case TokenKind::uint16:
    return 2;
  case TokenKind::int32:
  case TokenKind::uint32:
    return 4;
  case TokenKind::int64:
    return 8;
  }
  return 0;
}

/// No token that is stored so reaches this; tokens are handled as int32.
constexpr std::int64_t boundOf(TokenKind kind) {
  switch (kind) {
  case TokenKind::uint8:
    return 256;
  case TokenKind::int8:
    return 128;
  case TokenKind::int16:
    return 32768;
  case TokenKind::uint16:
    return 65536;
  default:
    return std::int64_t{1} << 31;
  }
}

inline std::string nameOf(TokenKind kind) {
  switch (kind) {
  case TokenKind::uint8:
    return "uint8";
  case TokenKind::int8:
    return "int8";
  case TokenKind::int16:
    return "int16";
  case TokenKind::int32:
    return "int32";
  case TokenKind::int64:
    return "int64";
  case TokenKind::uint16:
    return "uint16";
  case TokenKind::uint32:
    return "uint32";
  }
  return "";
}

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_DATA_TOKEN_KIND_H
