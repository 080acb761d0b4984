//===- mesh_view.h - Ranks, their groups and their pieces -------*- C++ -*-===//
//
// A mesh attribute as the interpreter walks it. Rank numbers count the last
// axis fastest; without a mesh there is one rank, which holds everything.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_INTERPRET_MESH_VIEW_H
#define MTPLAN_IR_INTERPRET_MESH_VIEW_H

#include <cstdint>
#include <vector>

#include "ir/mtp.h"

namespace mtplan::ir {

/// A run of one dimension: where a rank's piece begins, and how long the
/// global dimension is.
struct Span {
  std::int64_t offset = 0;
  std::int64_t global = 1;
};

class MeshView {
public:
  MeshView() = default;
  /// Null is allowed: one rank.
  explicit MeshView(MeshAttr mesh);

  /// The mesh of the ranks that share a coordinate on `axis`; the same, if it
  /// has no such axis.
  MeshView without(llvm::StringRef axis) const;

  std::int64_t ranks() const { return rankCount; }
  /// Number of the axis, or -1.
  int axis(llvm::StringRef name) const;
  std::int64_t sizeOf(int axisNumber) const { return sizes[axisNumber]; }
  std::int64_t coordinate(std::int64_t rank, int axisNumber) const {
    return rank / strides[axisNumber] % sizes[axisNumber];
  }
  /// The ranks that differ from `rank` only along the axis, in axis order.
  std::vector<std::int64_t> group(std::int64_t rank, int axisNumber) const;

  /// Which piece a rank has of a dimension that `axes` split, major first.
  Span pieceOf(llvm::ArrayRef<int> axes, std::int64_t rank,
               std::int64_t localSize) const;

  /// The same for every dimension of a tensor that lies by `layout` (null:
  /// whole). Entries for axes the mesh has not are ignored; `fits` tells.
  std::vector<Span> piecesOf(LayoutAttr layout, std::int64_t rank,
                             llvm::ArrayRef<std::int64_t> localShape) const;

  /// True if `layout` has an entry for each of `rank` dimensions and names
  /// only axes of this mesh.
  bool fits(LayoutAttr layout, std::size_t tensorRank) const;

private:
  void count();

  std::vector<std::string> names;
  std::vector<std::int64_t> sizes, strides;
  std::int64_t rankCount = 1;
};

/// Row-major index in the global tensor of a piece's element.
std::int64_t globalIndex(llvm::ArrayRef<Span> pieces,
                         llvm::ArrayRef<std::int64_t> localIndex);

} // namespace mtplan::ir

#endif // MTPLAN_IR_INTERPRET_MESH_VIEW_H
