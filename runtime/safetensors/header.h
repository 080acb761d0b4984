//===- header.h - What a safetensors file says of its tensors ---*- C++ -*-===//
//
//   u64      bytes of the header, at most 100,000,000
//   header   JSON: {"name": {"dtype", "shape", "data_offsets"}, ...}, which may
//            begin with "__metadata__": {"key": "text", ...} and end in spaces
//   data     the tensors, row-major, one after another without a hole
//
// Refused is what the reference reader refuses, and two things that it lets
// pass though the format does not allow them: a name given twice, and a header
// that does not begin with '{'. Every message says where, and both numbers.
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

#include "runtime/data/mapped_file.h"

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
  /// Empty: none was there, and none is written.
  std::map<std::string, std::string> metadata;
  std::vector<SafeTensor> tensors; ///< by offset; equal ones as in the file
  std::int64_t dataStart = 0;      ///< byte of the file at which data begins

  /// Null if no tensor is called so. Looks at each: who asks for many makes a
  /// map.
  const SafeTensor *find(std::string_view name) const;
  bool operator==(const SafetensorsHeader &) const = default;
};

inline constexpr std::int64_t kMostHeaderBytes = 100'000'000;

/// 0 if the format knows no such type.
std::int64_t bitsOf(std::string_view type);
/// Place in the reference's list of types; -1 if it is not there.
int rankOf(std::string_view type);
/// Bytes of a tensor.
/// \throws std::invalid_argument if the type is unknown, a dimension negative,
///         or the size more than 64 bits hold or no whole number of bytes
std::int64_t bytesOf(std::string_view type,
                     const std::vector<std::int64_t> &shape);

/// \throws DataError
SafetensorsHeader readHeader(const MappedFile &file);
/// From bytes in memory, of which there must be the whole header; `size` is
/// that of the whole file.
/// \throws DataError
SafetensorsHeader parseHeader(const std::string &file,
                              std::span<const std::byte> start,
                              std::int64_t size);

/// Length and JSON, padded with spaces to a multiple of 8: the bytes that the
/// reference writes for tensors in this order. They get their places one after
/// another: begin, end and dataStart are set.
/// \throws std::invalid_argument if a tensor cannot be written: its size
///         (bytesOf), its name (not UTF-8, given twice, or "__metadata__")
std::string layOut(SafetensorsHeader &header);

/// The reference writer's order: by type, the last of its list first, then by
/// name.
void sortAsReference(std::vector<SafeTensor> &tensors);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_SAFETENSORS_HEADER_H
