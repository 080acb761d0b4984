//===- digest.cpp - Checksums of bytes ------------------------------------===//

#include "runtime/data/digest.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include <xxhash.h>

#include "runtime/data/files.h"

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
  constexpr std::int64_t kPiece = 1 << 20; // fits the second-level cache
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

//===----------------------------------------------------------------------===//
// SHA-256
//===----------------------------------------------------------------------===//

namespace {

// Lists the first 32 bits of the fractional parts of the cube roots of the
// first 64 primes.
constexpr std::array<std::uint32_t, 64> kRounds = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

} // namespace

void Sha256::block(const unsigned char *data) {
  std::array<std::uint32_t, 64> w;
  for (std::size_t i = 0; i < 16; ++i)
    w[i] = std::uint32_t{data[4 * i]} << 24 |
           std::uint32_t{data[4 * i + 1]} << 16 |
           std::uint32_t{data[4 * i + 2]} << 8 | data[4 * i + 3];
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) +
           w[i - 7] + (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
  }
  auto [a, b, c, d, e, f, g, h] = hash;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t first =
        h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
        ((e & f) ^ (~e & g)) + kRounds[i] + w[i];
    const std::uint32_t second =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) +
        ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const std::array<std::uint32_t, 8> added = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i)
    hash[i] += added[i];
}

void Sha256::add(const void *data, std::size_t bytes) {
  const auto *from = static_cast<const unsigned char *>(data);
  std::size_t filled = total % 64;
  total += bytes;
  while (bytes > 0) {
    if (filled == 0 && bytes >= 64) {
      block(from);
      from += 64;
      bytes -= 64;
      continue;
    }
    const std::size_t taken = std::min(bytes, 64 - filled);
    std::memcpy(rest.data() + filled, from, taken);
    filled += taken;
    from += taken;
    bytes -= taken;
    if (filled == 64) {
      block(rest.data());
      filled = 0;
    }
  }
}

std::string Sha256::finish() {
  const std::uint64_t bits = 8 * total;
  const unsigned char one = 0x80, zero = 0;
  add(&one, 1);
  while (total % 64 != 56)
    add(&zero, 1);
  for (int shift = 56; shift >= 0; shift -= 8) {
    const auto byte = static_cast<unsigned char>(bits >> shift);
    add(&byte, 1);
  }
  std::string digits;
  for (std::uint32_t word : hash)
    for (int shift = 28; shift >= 0; shift -= 4)
      digits += "0123456789abcdef"[word >> shift & 15];
  return digits;
}

} // namespace mtplan::runtime
