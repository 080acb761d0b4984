//===- digest.cpp - Checksum of what a checkpoint holds -------------------===//

#include "runtime/checkpoint/digest.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include <xxhash.h>

#include "runtime/checkpoint/durable_file.h"

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

Digest digestOfFile(const std::string &path, std::int64_t offset,
                    std::int64_t bytes) {
  constexpr std::int64_t kPart = 1 << 20;
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(
      XXH3_createState(), XXH3_freeState);
  XXH3_128bits_reset(state.get());
  std::vector<char> part(static_cast<std::size_t>(std::min(bytes, kPart)));
  for (const std::int64_t end = offset + bytes; offset < end;) {
    const auto some = static_cast<std::size_t>(std::min(end - offset, kPart));
    readAt(path, offset, part.data(), some);
    XXH3_128bits_update(state.get(), part.data(), some);
    offset += static_cast<std::int64_t>(some);
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
