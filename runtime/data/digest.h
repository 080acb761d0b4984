//===- digest.h - Checksums of bytes in memory and in files -----*- C++ -*-===//
//
// The digest is XXH3 with 128 bits, printed as `xxh128sum` prints it. XXH3 runs
// at the speed of memory and finds every accident; it does not stop somebody
// who forges bytes on purpose.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_DATA_DIGEST_H
#define MTPLAN_RUNTIME_DATA_DIGEST_H

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace mtplan::runtime {

class MappedFile;

/// The bytes are big-endian, in the order in which they are printed.
using Digest = std::array<std::uint8_t, 16>;

Digest digestOf(std::string_view bytes);

/// Reads the whole file, not through its mapping.
/// \throws DataError if the file cannot be read or ends before its size
Digest digestOf(const MappedFile &file);

/// Digests `bytes` bytes piece by piece.
/// \param read  copies `count` bytes, `offset` bytes after the first, to `to`
Digest digestOfPieces(std::int64_t bytes,
                      const std::function<void(std::int64_t offset, char *to,
                                               std::size_t count)> &read);

/// Returns 32 hexadecimal digits.
std::string textOf(const Digest &digest);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_DATA_DIGEST_H
