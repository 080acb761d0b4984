//===- header.h - The header of a safetensors file --------------*- C++ -*-===//
//
//   u64      bytes of the header, at most 100,000,000
//   header   JSON: {"name": {"dtype", "shape", "data_offsets"}, ...}, which may
//            begin with "__metadata__": {"key": "text", ...} and end in spaces
//   data     the tensors, row-major, one after another without a hole
//
// The reader rejects what the reference reader rejects. It also rejects two
// faults that the format forbids and the reference accepts: a name given twice,
// and a header that does not begin with '{'. Every message states the place and
// both numbers.
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
  std::string type; ///< "F32", "BF16", ... as the format spells it
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0, end = 0; ///< bytes from the start of the data

  std::int64_t bytes() const { return end - begin; }
  bool operator==(const SafeTensor &) const = default;
};

struct SafetensorsHeader {
  /// Empty metadata are not written.
  std::map<std::string, std::string> metadata;
  std::vector<SafeTensor> tensors; ///< by offset; equal ones as in the file
  std::int64_t dataStart = 0;      ///< byte of the file at which data begins

  /// Returns null if no tensor has this name. Complexity: linear.
  const SafeTensor *find(std::string_view name) const;
  bool operator==(const SafetensorsHeader &) const = default;
};

inline constexpr std::int64_t kMostHeaderBytes = 100'000'000;

/// Returns the bits of an element; 0 if the format knows no such type.
std::int64_t bitsOf(std::string_view type);
/// Returns the place in the reference's list of types; -1 if it is not there.
int rankOf(std::string_view type);
/// Returns the bytes of a tensor.
/// \throws std::invalid_argument if the type is unknown, a dimension negative,
///         or the size beyond 64 bits or no whole number of bytes
std::int64_t bytesOf(std::string_view type,
                     const std::vector<std::int64_t> &shape);

/// Reads the header of a file.
/// \throws DataError
SafetensorsHeader readHeader(const MappedFile &file);
/// Parses the first bytes of a file, which hold the whole header.
/// \param size  of the whole file, in bytes
/// \throws DataError
SafetensorsHeader parseHeader(const std::string &file,
                              std::span<const std::byte> start,
                              std::int64_t size);

/// Returns length and JSON, padded with spaces to a multiple of 8: the bytes
/// that the reference writes for tensors in this order. Sets begin, end and
/// dataStart, so that the tensors follow each other. \throws
/// std::invalid_argument if a tensor cannot be written: its size
///         (bytesOf), its name (not UTF-8, given twice, or "__metadata__")
std::string layOut(SafetensorsHeader &header);

/// Sorts as the reference writer does: by type, the last of its list first,
/// then by name.
void sortAsReference(std::vector<SafeTensor> &tensors);

inline constexpr std::string_view kMetadataKey = "__metadata__";

/// Reads the JSON `text`, which begins at byte `firstByte` of `file`.
/// \throws DataError, beside the exceptions of `events`
void readFileJson(const std::string &file, std::string_view text,
                  std::int64_t firstByte, base::JsonEvents &events);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_SAFETENSORS_HEADER_H
