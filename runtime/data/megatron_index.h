//===- megatron_index.h - The .idx beside a Megatron .bin -------*- C++ -*-===//
//
//    0  9 B     "MMIDIDX\0\0"
//    9  u64     version, 1
//   17  u8      element code: 1 u8, 2 i8, 3 i16, 4 i32, 5 i64, 8 u16
//   18  u64     S, number of sequences
//   26  u64     D, number of documents + 1
//   34  i32[S]  lengths in tokens
//       i64[S]  byte offsets in the .bin
//       i64[D]  first sequence of each document; at the end S
//       i8[S]   modes, in multimodal files only; not read here
//
// (NVIDIA/Megatron-LM, megatron/core/datasets/indexed_dataset.py.) The arrays
// are not aligned.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_DATA_MEGATRON_INDEX_H
#define MTPLAN_RUNTIME_DATA_MEGATRON_INDEX_H

#include <array>
#include <cstdint>
#include <string>

#include "runtime/data/mapped_file.h"
#include "runtime/data/token_kind.h"

namespace mtplan::runtime {

class MegatronIndex {
public:
  /// \throws DataError on a foreign header or a size that does not fit it
  explicit MegatronIndex(const std::string &path);

  TokenKind kind() const { return elements; }
  std::int64_t sequences() const { return sequenceCount; }
  std::int64_t documents() const { return boundaryCount - 1; }

  /// Tokens of one sequence.
  std::int64_t length(std::int64_t sequence) const;
  /// Byte in the .bin where it begins.
  std::int64_t offset(std::int64_t sequence) const;
  /// First sequence of a document, or `sequences()` behind the last.
  std::int64_t firstSequence(std::int64_t document) const;

  /// Reads all of it: lengths are not negative, sequences lie one behind the
  /// other up to the end of the .bin, documents cover them in order.
  /// \throws DataError at the first that is not so
  void check(const std::string &binPath, std::int64_t binBytes) const;

  const MappedFile &bytes() const { return file; }

private:
  MappedFile file;
  TokenKind elements = TokenKind::uint16;
  std::int64_t sequenceCount = 0;
  std::int64_t boundaryCount = 0; ///< documents + 1
};

/// The .bin and the .idx that `name` stands for: either of them, or both
/// without their ending.
std::array<std::string, 2> megatronFiles(const std::string &name);

/// True if the file exists and starts as an index does.
bool isMegatronIndex(const std::string &path);

/// What an index starts with.
inline constexpr char kMegatronMagic[9] = {'M', 'M', 'I', 'D', 'I',
                                           'D', 'X', 0,   0};
inline constexpr std::int64_t kMegatronHeaderBytes = 34;

/// Number of an element type in an index.
int megatronCodeOf(TokenKind kind);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_DATA_MEGATRON_INDEX_H
