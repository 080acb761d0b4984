//===- digest.h - Checksums of bytes ----------------------------*- C++ -*-===//
//
// The digest is XXH3 with 128 bits, printed as by `xxh128sum`. XXH3 runs at
// memory speed and detects accidental damage, but it is not cryptographic.
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

/// Holds the bytes of a digest in big-endian order, as they are printed.
using Digest = std::array<std::uint8_t, 16>;

Digest digestOf(std::string_view bytes);

/// Returns the digest of a whole file, which is read by system calls and not
/// through the mapping.
/// \throws DataError if the file cannot be read or has shrunk
Digest digestOf(const MappedFile &file);

/// Returns the digest of `bytes` bytes. `read` copies `count` bytes, from
/// `offset` on, to `to`.
Digest digestOfPieces(std::int64_t bytes,
                      const std::function<void(std::int64_t offset, char *to,
                                               std::size_t count)> &read);

/// Returns the digest as 32 hexadecimal digits.
std::string textOf(const Digest &digest);

/// Computes SHA-256 (FIPS 180-4), which `sha256sum` prints.
class Sha256 {
public:
  void add(const void *data, std::size_t bytes);
  /// Returns 64 hexadecimal digits. add() must not be called afterwards.
  std::string finish();

private:
  void block(const unsigned char *data);

  std::array<std::uint32_t, 8> hash = {0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                       0xa54ff53a, 0x510e527f, 0x9b05688c,
                                       0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> rest = {};
  std::uint64_t total = 0; ///< bytes added
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_DATA_DIGEST_H
