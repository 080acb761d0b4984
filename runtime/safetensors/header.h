//===- header.h - The header of a safetensors file --------------*- C++ -*-===//
//
// A file consists of three parts:
//
//   u64      bytes of the header, at most 100,000,000
//   header   JSON: {"name": {"dtype", "shape", "data_offsets"}, ...}, which may
//            begin with "__metadata__": {"key": "text", ...} and end in spaces
//   data     the tensors, row-major, one after another without a hole
//
// The reader rejects all files that the reference implementation (the
// safetensors library) rejects. It also rejects two faults that the format
// forbids but the reference accepts: a duplicate name, and a header that does
// not begin with '{'. Error messages state the position, the value found and
// the value expected.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_SAFETENSORS_HEADER_H
#define MTPLAN_RUNTIME_SAFETENSORS_HEADER_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_events.h"
#include "runtime/data/files.h"

namespace mtplan::runtime {

struct SafeTensor {
  std::string name;
  std::string type; ///< a type name of the format, such as "F32" or "BF16"
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0, end = 0; ///< bytes relative to dataStart

  std::int64_t bytes() const { return end - begin; }
  bool operator==(const SafeTensor &) const = default;
};

struct SafetensorsHeader {
  /// Holds the entries of "__metadata__". If the map is empty, writers leave
  /// out "__metadata__".
  std::map<std::string, std::string> metadata;
  std::vector<SafeTensor> tensors; ///< sorted by offset, then in file order
  std::int64_t dataStart = 0;      ///< offset of the data in the file in bytes

  /// Returns null if there is no such tensor. Takes linear time.
  const SafeTensor *find(std::string_view name) const;
  bool operator==(const SafetensorsHeader &) const = default;
};

inline constexpr std::int64_t kMostHeaderBytes = 100'000'000;

/// Returns the size of an element in bits, or 0 if there is no such type.
std::int64_t bitsOf(std::string_view type);
/// Returns the index of a type in the reference's list of types, or -1 if there
/// is no such type.
int rankOf(std::string_view type);
/// \throws std::invalid_argument if the type is unknown, a dimension is
/// negative, or the size exceeds 64 bits or is not a whole number of bytes
std::int64_t bytesOf(std::string_view type,
                     const std::vector<std::int64_t> &shape);

/// \throws DataError if the header is invalid or does not match the file size
SafetensorsHeader readHeader(const MappedFile &file);
/// \param start  the first bytes of the file, at least the header
/// \param size  the size of the file in bytes
/// \throws DataError as readHeader
SafetensorsHeader parseHeader(const std::string &file,
                              std::span<const std::byte> start,
                              std::int64_t size);

/// Returns the bytes that the reference writes before the data: the length and
/// the JSON, padded with spaces to a multiple of 8. Sets begin, end and
/// dataStart for contiguous tensors in the given order.
/// \throws std::invalid_argument if the size of a tensor (bytesOf) is invalid,
/// a name is invalid (not UTF-8, given twice, or "__metadata__"), the metadata
/// is not UTF-8, or the JSON is longer than kMostHeaderBytes
std::string layOut(SafetensorsHeader &header);

/// Sorts like the reference writer: by descending rankOf(), then by name.
void sortAsReference(std::vector<SafeTensor> &tensors);

inline constexpr std::string_view kMetadataKey = "__metadata__";

/// Reads the JSON `text`, which begins at byte `firstByte` of `file`.
/// Exceptions of `events` pass through.
/// \throws DataError if the JSON is invalid
void readFileJson(const std::string &file, std::string_view text,
                  std::int64_t firstByte, base::JsonEvents &events);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_SAFETENSORS_HEADER_H
