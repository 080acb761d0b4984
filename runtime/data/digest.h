//===- digest.h - Checksums of bytes ----------------------------*- C++ -*-===//
//
// The digest is XXH3 with 128 bits, printed as `xxh128sum` prints it. XXH3 runs
// at the speed of memory and finds every accident; it does not stop somebody
// who forges bytes on purpose.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_DATA_DIGEST_H
#define MTPLAN_RUNTIME_DATA_DIGEST_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace mtplan::runtime {

class MappedFile;

/// A digest's bytes, big-endian: in the order in which they are printed.
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

/// Computes SHA-256 (FIPS 180-4), the number that `sha256sum` prints.
class Sha256 {
public:
  void add(const void *data, std::size_t bytes);
  /// Returns 64 hexadecimal digits. Nothing may be added afterwards.
  std::string finish();

private:
  void block(const unsigned char *data);

  std::array<std::uint32_t, 8> hash = {0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                       0xa54ff53a, 0x510e527f, 0x9b05688c,
                                       0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> rest = {};
  std::uint64_t total = 0; ///< bytes
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_DATA_DIGEST_H
