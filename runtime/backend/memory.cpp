//===- memory.cpp - The memory of a backend -------------------------------===//

#include "runtime/backend/memory.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include <sys/mman.h>

#include "base/index.h"
#include "runtime/backend/element.h"

namespace mtplan::runtime {

using base::sized;

namespace {

// mmap rejects a length of 0.
std::size_t mappedBytes(std::size_t bytes) {
  return std::max<std::size_t>(bytes, 1);
}

constexpr std::int64_t kPiece = 8 << 20; // bytes of the longest upload
// The pattern's period in elements is odd, so that rows of a matrix differ.
constexpr std::int64_t kPeriod = 8191;

// An upload consists of whole periods, so that the pattern continues in the
// next upload.
std::int64_t lengthOf(ElementType type, std::int64_t bytes) {
  const std::int64_t period = kPeriod * bytesOf(type);
  return std::clamp<std::int64_t>((bytes + period - 1) / period, 1,
                                  kPiece / period) *
         period;
}

} // namespace

void *HostMemory::allocate(std::size_t bytes) {
  void *data = mmap(nullptr, mappedBytes(bytes), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED)
    throw std::runtime_error("cannot allocate " + std::to_string(bytes) +
                             " bytes");
  return data;
}

void HostMemory::release(void *data, std::size_t bytes) noexcept {
  munmap(data, mappedBytes(bytes));
}

Memory &hostMemory() {
  static HostMemory memory;
  return memory;
}

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
