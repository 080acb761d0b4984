//===- arenas.h - Arrays in the arenas of a stage ---------------*- C++ -*-===//

#ifndef MTPLAN_PASSES_MEMORY_ARENAS_H
#define MTPLAN_PASSES_MEMORY_ARENAS_H

#include <map>
#include <string>

#include "ir/mtp.h"

namespace mtplan::passes {

inline constexpr std::int64_t kAlignment = 256; ///< bytes

/// Describes an array of tensors in an arena. The members are those of
/// PlaceAttr, and sizes are in bytes.
struct Array {
  llvm::StringRef arena;
  std::int64_t offset = 0, size = 0, entries = 1, stride = 0, slots = 1,
               slotStride = 0;
};

class Arenas {
public:
  /// \param size  bytes of an entry
  Array allocate(llvm::StringRef arena, std::int64_t size, std::int64_t entries,
                 std::int64_t slots = 1);
  /// Returns a reference to the end of an arena's last array, in bytes, which
  /// callers may change.
  std::int64_t &end(llvm::StringRef arena) { return ends[arena.str()]; }

private:
  std::map<std::string, std::int64_t> ends;
};

/// Returns the PlaceAttr of a tensor in `array`. The tensor of the first layer
/// is in entry `entry`, and each layer adds `step` to the number of the entry.
ir::PlaceAttr placeIn(const Array &array, std::int64_t entry, std::int64_t step,
                      mlir::Type element);

std::int64_t bytesOf(mlir::Type type, mlir::Type element);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_MEMORY_ARENAS_H
