//===- arenas.cpp - Arrays in the arenas of a stage -----------------------===//

#include "passes/memory/arenas.h"

#include "passes/memory/offsets.h"

using namespace mlir;

namespace mtplan::passes {

Array Arenas::allocate(StringRef arena, int64_t size, int64_t entries,
                       int64_t slots) {
  Array array;
  array.arena = arena;
  array.size = size;
  array.entries = entries;
  array.stride = entries > 1 ? roundedUp(size, kAlignment) : 0;
  array.slots = slots;
  int64_t all = roundedUp(size, kAlignment) * entries;
  array.slotStride = slots > 1 ? all : 0;
  int64_t &free = end(arena);
  array.offset = free;
  free += all * slots;
  return array;
}

ir::PlaceAttr placeIn(const Array &array, int64_t entry, int64_t step,
                      Type element) {
  return ir::PlaceAttr::get(element.getContext(), array.arena, array.offset,
                            array.size, array.entries, array.stride,
                            array.slots, array.slotStride, entry, step,
                            element);
}

int64_t bytesOf(Type type, Type element) {
  return std::max<int64_t>(
             1, llvm::cast<RankedTensorType>(type).getNumElements()) *
         element.getIntOrFloatBitWidth() / 8;
}

} // namespace mtplan::passes
