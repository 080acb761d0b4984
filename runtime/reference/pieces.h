//===- pieces.h - Elements of a rank's piece of a tensor --------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_REFERENCE_PIECES_H
#define MTPLAN_RUNTIME_REFERENCE_PIECES_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mtplan::runtime::reference {

/// One dimension of a rank's piece of a tensor.
struct Span {
  std::int64_t offset = 0; ///< where the piece begins in the global dimension
  std::int64_t global = 1; ///< size of the global dimension
};

/// Returns the row-major index in the global tensor of a piece's element.
inline std::int64_t globalIndex(std::span<const Span> pieces,
                                std::span<const std::int64_t> local) {
  std::int64_t index = 0;
  for (std::size_t d = 0; d < pieces.size(); ++d)
    index = index * pieces[d].global + pieces[d].offset + local[d];
  return index;
}

/// Calls `visit(linear, index)` for every element of a tensor of `shape`, in
/// row-major order.
template <typename Visit>
void forEachIndex(const std::vector<std::int64_t> &shape, Visit &&visit) {
  std::vector<std::int64_t> index(shape.size(), 0);
  std::size_t count = 1;
  for (std::int64_t size : shape)
    count *= static_cast<std::size_t>(size);
  for (std::size_t linear = 0; linear < count; ++linear) {
    visit(linear, index);
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d])
        break;
      index[d] = 0;
    }
  }
}

} // namespace mtplan::runtime::reference

#endif // MTPLAN_RUNTIME_REFERENCE_PIECES_H
