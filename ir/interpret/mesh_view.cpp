//===- mesh_view.cpp - Ranks, their groups and their pieces ---------------===//

#include "ir/interpret/mesh_view.h"

#include "llvm/ADT/STLExtras.h"

namespace mtplan::ir {

MeshView::MeshView(MeshAttr mesh) {
  if (!mesh)
    return;
  for (auto [name, size] : llvm::zip_equal(mesh.getNames(), mesh.getSizes())) {
    names.push_back(name.str());
    sizes.push_back(size);
  }
  count();
}

void MeshView::count() {
  rankCount = 1;
  strides.assign(sizes.size(), 1);
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[i] = rankCount;
    rankCount *= sizes[i];
  }
}

MeshView MeshView::without(llvm::StringRef axis) const {
  MeshView rest;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (axis != names[i]) {
      rest.names.push_back(names[i]);
      rest.sizes.push_back(sizes[i]);
    }
  rest.count();
  return rest;
}

int MeshView::axis(llvm::StringRef name) const {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (name == names[i])
      return static_cast<int>(i);
  return -1;
}

std::vector<std::int64_t> MeshView::group(std::int64_t rank,
                                          int axisNumber) const {
  const std::int64_t first =
      rank - coordinate(rank, axisNumber) * strides[axisNumber];
  std::vector<std::int64_t> members;
  for (std::int64_t i = 0; i < sizes[axisNumber]; ++i)
    members.push_back(first + i * strides[axisNumber]);
  return members;
}

Span MeshView::pieceOf(llvm::ArrayRef<int> axes, std::int64_t rank,
                       std::int64_t localSize) const {
  std::int64_t piece = 0, pieces = 1;
  for (int number : axes) {
    piece = piece * sizes[number] + coordinate(rank, number);
    pieces *= sizes[number];
  }
  return {piece * localSize, pieces * localSize};
}

std::vector<Span>
MeshView::piecesOf(LayoutAttr layout, std::int64_t rank,
                   llvm::ArrayRef<std::int64_t> localShape) const {
  std::vector<Span> pieces;
  for (std::size_t d = 0; d < localShape.size(); ++d) {
    llvm::SmallVector<int, 2> axes;
    if (layout && d < layout.getDims().size())
      for (auto name : layout.getDims()[d].getAsRange<mlir::StringAttr>())
        if (int number = axis(name.getValue()); number >= 0)
          axes.push_back(number);
    pieces.push_back(pieceOf(axes, rank, localShape[d]));
  }
  return pieces;
}

bool MeshView::fits(LayoutAttr layout, std::size_t tensorRank) const {
  if (!layout)
    return true;
  if (layout.getDims().size() != tensorRank)
    return false;
  for (mlir::ArrayAttr dim : layout.getDims())
    for (auto name : dim.getAsRange<mlir::StringAttr>())
      if (axis(name.getValue()) < 0)
        return false;
  return llvm::all_of(layout.getPartial(), [&](mlir::StringAttr name) {
    return axis(name.getValue()) >= 0;
  });
}

} // namespace mtplan::ir
