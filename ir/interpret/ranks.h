//===- ranks.h - Ranks, their tensors and collectives -----------*- C++ -*-===//
//
// All values of the interpreter are tensors of doubles, independent of their
// type in the program, because the interpreter checks meaning and not rounding.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_INTERPRET_RANKS_H
#define MTPLAN_IR_INTERPRET_RANKS_H

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/mtp.h"
#include "runtime/reference/kernels.h"

namespace mtplan::ir {

using runtime::reference::forEachIndex, runtime::reference::globalIndex,
    runtime::reference::Span;

/// Holds a tensor with its elements in row-major order. A scalar has one
/// element.
struct HostTensor {
  std::vector<std::int64_t> shape;
  std::vector<double> data;

  HostTensor() = default;
  explicit HostTensor(std::vector<std::int64_t> dims)
      : shape(std::move(dims)), data(countOf(shape), 0.0) {}

  static std::size_t countOf(const std::vector<std::int64_t> &dims) {
    std::size_t count = 1;
    for (std::int64_t dim : dims)
      count *= static_cast<std::size_t>(dim);
    return count;
  }
};

/// Holds the shards of one value of an SPMD program, one per rank. The shards
/// are immutable and shared, so that values are passed on without copies.
using RankValues = std::shared_ptr<const std::vector<HostTensor>>;

inline RankValues share(std::vector<HostTensor> values) {
  return std::make_shared<const std::vector<HostTensor>>(std::move(values));
}

/// Computes coordinates and groups of ranks from a mesh attribute. In rank
/// numbers, the last axis varies fastest. Without a mesh there is one rank.
class MeshView {
public:
  MeshView() = default;
  explicit MeshView(MeshAttr mesh);

  /// Returns the mesh of the ranks that share a coordinate on `axis`, or this
  /// mesh if it lacks the axis.
  MeshView without(llvm::StringRef axis) const;

  std::int64_t ranks() const { return rankCount; }
  int axis(llvm::StringRef name) const;
  std::int64_t sizeOf(int axisNumber) const { return sizes[axisNumber]; }
  std::int64_t coordinate(std::int64_t rank, int axisNumber) const {
    return rank / strides[axisNumber] % sizes[axisNumber];
  }
  /// Returns the ranks that differ from `rank` only along the axis, in the
  /// order of the axis.
  std::vector<std::int64_t> group(std::int64_t rank, int axisNumber) const;

  /// Returns the shard that `rank` holds of a dimension.
  /// \param axes  the axes that shard the dimension, major axis first
  Span pieceOf(llvm::ArrayRef<int> axes, std::int64_t rank,
               std::int64_t localSize) const;

  /// Returns the shards of all dimensions of a tensor with `layout`. A null
  /// layout shards no dimension. Axes that the mesh lacks are ignored; fits()
  /// reports them.
  std::vector<Span> piecesOf(LayoutAttr layout, std::int64_t rank,
                             llvm::ArrayRef<std::int64_t> localShape) const;

  /// Returns whether `layout` has an entry for each of `tensorRank` dimensions
  /// and names only axes of this mesh.
  bool fits(LayoutAttr layout, std::size_t tensorRank) const;

private:
  void count();

  std::vector<std::string> names;
  std::vector<std::int64_t> sizes, strides;
  std::int64_t rankCount = 1;
};

mlir::StringAttr axisOfCollective(mlir::Operation *op);

/// Runs a collective on all ranks. A sum adds the values of the ranks of a
/// group in axis order. Fails, with a diagnostic, if the mesh lacks the axis or
/// a dimension is not divisible.
mlir::FailureOr<std::vector<HostTensor>>
runCollective(mlir::Operation *op, const std::vector<HostTensor> &inputs,
              const MeshView &mesh);

/// Adds `term` to `total` or, with `max`, takes the element-wise maximum. NaN
/// is propagated.
void reduceInto(HostTensor &total, const HostTensor &term, bool max);

} // namespace mtplan::ir

#endif // MTPLAN_IR_INTERPRET_RANKS_H
