//===- memory_use.cpp - What a stage's buffers take -----------------------===//

#include "runtime/plan/memory_use.h"

#include <algorithm>

namespace mtplan::runtime {

std::map<MemoryClass, std::int64_t> bytesInBuffers(const Stage &stage) {
  using Range = std::pair<std::int64_t, std::int64_t>; // begin, end
  std::map<int, std::vector<Range>> ranges;            // by arena
  for (const Buffer &buffer : stage.buffers)
    for (int entry = 0; entry < buffer.entries; ++entry)
      for (int slot = 0; slot < buffer.slots; ++slot) {
        std::int64_t begin = buffer.offset + entry * buffer.entryStride +
                             slot * buffer.slotStride;
        ranges[buffer.arena].emplace_back(begin, begin + buffer.size);
      }
  std::map<MemoryClass, std::int64_t> bytes;
  for (auto &[arena, taken] : ranges) {
    std::ranges::sort(taken);
    std::int64_t end = 0, all = 0;
    for (const auto &[from, to] : taken) {
      all += std::max<std::int64_t>(0, to - std::max(from, end));
      end = std::max(end, to);
    }
    bytes[stage.arenas[static_cast<std::size_t>(arena)].memoryClass] += all;
  }
  return bytes;
}

} // namespace mtplan::runtime
