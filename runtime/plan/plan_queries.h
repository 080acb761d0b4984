//===- plan_queries.h - Facts that follow from a plan -----------*- C++ -*-===//
//
// Every function takes a stage or a tensor whose indices checkRanges has found
// to be valid.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_PLAN_PLAN_QUERIES_H
#define MTPLAN_RUNTIME_PLAN_PLAN_QUERIES_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// Converts an index that checkRanges has found not to be negative.
inline std::size_t indexed(int index) {
  return static_cast<std::size_t>(index);
}

/// Formats a shape: "[2, 6]".
std::string shapeWords(std::span<const std::int64_t> shape);

/// Returns one past the buffer's last byte in the arena, over all entries and
/// slots.
std::int64_t endOf(const Buffer &buffer);

/// Returns the bytes of each memory class that lie in some buffer: an arena
/// without alignment gaps. O(n log n) in entries and slots of all buffers.
std::map<MemoryClass, std::int64_t> bytesInBuffers(const Stage &stage);

/// Returns whether the communicators with ranks of the stage have no other
/// ranks.
/// \param stage  its ranks ascend
bool isWithin(const Group &group, const Stage &stage);

/// The side that executes an instruction. Arenas of class `host` lie in the
/// host's memory, all others in the device's. The side with an instruction's
/// operands executes it; a copy may move data between the two. On CPU ranks
/// both are one.
enum class Side : std::uint8_t {
  device,
  host,
  down,  ///< copies from the device to the host
  up,    ///< copies from the host to the device
  mixed, ///< none of these, and therefore invalid
};

bool isOnHost(const Stage &stage, const Tensor &tensor);

Side sideOf(const Stage &stage, const Instruction &instruction);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_PLAN_QUERIES_H
