//===- pattern.cpp - Numbers to measure kernels on ------------------------===//

#include "runtime/backend/pattern.h"

#include <algorithm>

#include "base/index.h"
#include "runtime/backend/element.h"

namespace mtplan::runtime {

using base::sized;

namespace {

constexpr std::int64_t kPiece = 8 << 20; // bytes
// Elements; no power of two divides it, so that rows are not all the same.
constexpr std::int64_t kPeriod = 8191;

// Whole periods, so that it goes on from one piece to the next.
std::int64_t lengthOf(ElementType type, std::int64_t bytes) {
  const std::int64_t period = kPeriod * bytesOf(type);
  return std::clamp<std::int64_t>((bytes + period - 1) / period, 1,
                                  kPiece / period) *
         period;
}

} // namespace

Pattern::Pattern(Memory &theMemory, ElementType type, std::int64_t bytes)
    : memory(theMemory), length(lengthOf(type, bytes)),
      piece(memory.staging(), sized(length)) {
  const std::int64_t period = kPeriod * bytesOf(type);
  for (std::int64_t i = 0; i < kPeriod; ++i) {
    const std::int64_t mixed = i * 2'654'435'761 % 65'536;
    writeElement(type, piece.get(), i,
                 type == ElementType::i32
                     ? static_cast<double>(mixed % 512)
                     : static_cast<double>(mixed) / 65'536.0 - 0.499);
  }
  for (std::int64_t done = period; done < length; done += period)
    std::memcpy(piece.get() + done, piece.get(), sized(period));
}

void Pattern::fill(void *to, std::int64_t bytes) {
  for (std::int64_t done = 0; done < bytes; done += length)
    memory.upload(static_cast<std::byte *>(to) + done, piece.get(),
                  sized(std::min(length, bytes - done)));
}

} // namespace mtplan::runtime
