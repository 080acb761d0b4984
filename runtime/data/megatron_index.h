//===- megatron_index.h - The .idx beside a Megatron .bin -------*- C++ -*-===//
//
//    0  9 B     "MMIDIDX\0\0"
//    9  u64     version, 1
//   17  u8      element code: 1 u8, 2 i8, 3 i16, 4 i32, 5 i64, 8 u16
//   18  u64     S, number of sequences
//   26  u64     D, number of documents + 1
//   34  i32[S]  lengths in tokens
//       i64[S]  byte offsets in the .bin
//       i64[D]  first sequence of each document, and S as the last
//       i8[S]   modes, in multimodal files only; ignored
//
// The arrays are not aligned. NVIDIA/Megatron-LM defines the format in
// megatron/core/datasets/indexed_dataset.py.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_DATA_MEGATRON_INDEX_H
#define MTPLAN_RUNTIME_DATA_MEGATRON_INDEX_H

#include <array>
#include <cstdint>
#include <string>

#include "runtime/data/files.h"

namespace mtplan::runtime {

/// Names the integer type in which a token is stored.
enum class TokenKind { uint8, int8, int16, int32, int64, uint16, uint32 };

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

/// Returns the exclusive upper bound of a type's tokens, at most 2^31, because
/// tokens are processed as int32.
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

class MegatronIndex {
public:
  /// \throws DataError if the header is not Megatron's or the size is wrong
  explicit MegatronIndex(const std::string &path);

  TokenKind kind() const { return elements; }
  std::int64_t sequences() const { return sequenceCount; }
  std::int64_t documents() const { return boundaryCount - 1; }

  std::int64_t length(std::int64_t sequence) const;
  /// Returns the byte offset of a sequence in the .bin.
  std::int64_t offset(std::int64_t sequence) const;
  /// Returns the first sequence of a document. For the document after the last,
  /// returns sequences().
  std::int64_t firstSequence(std::int64_t document) const;

  /// Checks that lengths are not negative, that sequences cover the .bin
  /// without gaps, and that documents cover the sequences in order.
  /// \throws DataError at the first fault
  void check(const std::string &binPath, std::int64_t binBytes) const;

  const MappedFile &bytes() const { return file; }

private:
  MappedFile file;
  TokenKind elements = TokenKind::uint16;
  std::int64_t sequenceCount = 0;
  std::int64_t boundaryCount = 0; ///< documents + 1
};

/// Returns the paths of .bin and .idx, given either path or their common stem.
std::array<std::string, 2> megatronFiles(const std::string &name);

/// Returns whether the file exists and begins with kMegatronMagic.
bool isMegatronIndex(const std::string &path);

inline constexpr char kMegatronMagic[9] = {'M', 'M', 'I', 'D', 'I',
                                           'D', 'X', 0,   0};
inline constexpr std::int64_t kMegatronHeaderBytes = 34;

/// Returns the element code of a type in an index, or 0 if the format lacks the
/// type.
int megatronCodeOf(TokenKind kind);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_DATA_MEGATRON_INDEX_H
