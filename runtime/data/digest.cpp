//===- digest.cpp - Checksums of bytes in memory and in files -------------===//

#include "runtime/data/digest.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include <xxhash.h>

#include "runtime/data/mapped_file.h"

namespace mtplan::runtime {

namespace {

Digest printed(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  Digest digest;
  std::memcpy(digest.data(), canonical.digest, digest.size());
  return digest;
}

} // namespace

Digest digestOf(std::string_view bytes) {
  return printed(XXH3_128bits(bytes.data(), bytes.size()));
}

Digest digestOf(const MappedFile &file) {
  return digestOfPieces(
      file.size(), [&](std::int64_t offset, char *to, std::size_t count) {
        file.copy(offset, static_cast<std::int64_t>(count), to);
      });
}

Digest digestOfPieces(
    std::int64_t bytes,
    const std::function<void(std::int64_t, char *, std::size_t)> &read) {
  constexpr std::int64_t kPiece = 1 << 20; // stays in the second-level cache
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(
      XXH3_createState(), XXH3_freeState);
  XXH3_128bits_reset(state.get());
  std::vector<char> piece(static_cast<std::size_t>(std::min(bytes, kPiece)));
  for (std::int64_t offset = 0; offset < bytes; offset += kPiece) {
    const auto count =
        static_cast<std::size_t>(std::min(bytes - offset, kPiece));
    read(offset, piece.data(), count);
    XXH3_128bits_update(state.get(), piece.data(), count);
  }
  return printed(XXH3_128bits_digest(state.get()));
}

std::string textOf(const Digest &digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

} // namespace mtplan::runtime
