//===- sha256.h - Checksum of a corpus --------------------------*- C++ -*-===//
//
// SHA-256 (FIPS 180-4): the number that `sha256sum` prints.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_DATA_SHA256_H
#define MTPLAN_RUNTIME_DATA_SHA256_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace mtplan::runtime {

class Sha256 {
public:
  void add(const void *data, std::size_t bytes);
  /// 64 hexadecimal digits; nothing may be added after.
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

#endif // MTPLAN_RUNTIME_DATA_SHA256_H
