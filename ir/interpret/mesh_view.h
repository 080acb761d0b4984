//===- mesh_view.h - Ranks, their groups and their pieces -------*- C++ -*-===//
//
// A mesh attribute with ranks and groups. Rank numbers count the last axis
// fastest. Without a mesh there is one rank, which holds everything.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_INTERPRET_MESH_VIEW_H
#define MTPLAN_IR_INTERPRET_MESH_VIEW_H

#include <cstdint>
#include <vector>

#include "ir/mtp.h"
#include "runtime/reference/pieces.h"

namespace mtplan::ir {

using runtime::reference::globalIndex, runtime::reference::Span;

class MeshView {
public:
  MeshView() = default;
  /// Makes a view of one rank if the mesh is null.
  explicit MeshView(MeshAttr mesh);

  /// Returns the mesh of the ranks that share a coordinate on `axis`, or the
  /// same mesh if it has no such axis.
  MeshView without(llvm::StringRef axis) const;

  std::int64_t ranks() const { return rankCount; }
  /// Returns the number of the axis, or -1.
  int axis(llvm::StringRef name) const;
  std::int64_t sizeOf(int axisNumber) const { return sizes[axisNumber]; }
  std::int64_t coordinate(std::int64_t rank, int axisNumber) const {
    return rank / strides[axisNumber] % sizes[axisNumber];
  }
  /// Returns the ranks that differ from `rank` only along the axis, in the
  /// order of the axis.
  std::vector<std::int64_t> group(std::int64_t rank, int axisNumber) const;

  /// Returns the piece that a rank has of a dimension that `axes` split, major
  /// axis first.
  Span pieceOf(llvm::ArrayRef<int> axes, std::int64_t rank,
               std::int64_t localSize) const;

  /// Returns the pieces of all dimensions of a tensor with `layout`, which are
  /// whole if it is null. Axes that the mesh lacks are ignored; `fits` reports
  /// them.
  std::vector<Span> piecesOf(LayoutAttr layout, std::int64_t rank,
                             llvm::ArrayRef<std::int64_t> localShape) const;

  /// Returns whether `layout` has an entry for each of `rank` dimensions and
  /// names only axes of this mesh.
  bool fits(LayoutAttr layout, std::size_t tensorRank) const;

private:
  void count();

  std::vector<std::string> names;
  std::vector<std::int64_t> sizes, strides;
  std::int64_t rankCount = 1;
};

} // namespace mtplan::ir

#endif // MTPLAN_IR_INTERPRET_MESH_VIEW_H
