//===- digest.h - Checksum of what a checkpoint holds -----------*- C++ -*-===//
//
// XXH3 with 128 bits, as `xxh128sum` prints it: finds every accident, at the
// speed of memory. It is no proof against somebody who wants to deceive.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CHECKPOINT_DIGEST_H
#define MTPLAN_RUNTIME_CHECKPOINT_DIGEST_H

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace mtplan::runtime {

/// Big-endian, as printed.
using Digest = std::array<std::uint8_t, 16>;

Digest digestOf(std::string_view bytes);
/// Of `bytes` bytes of a file, from `offset` on.
/// \throws CheckpointError if it cannot be read or ends before
Digest digestOfFile(const std::string &path, std::int64_t offset,
                    std::int64_t bytes);
/// 32 hexadecimal digits.
std::string textOf(const Digest &digest);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CHECKPOINT_DIGEST_H
