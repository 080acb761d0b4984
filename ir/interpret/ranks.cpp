//===- ranks.cpp - Ranks, their tensors and collectives -------------------===//

#include "ir/interpret/ranks.h"

#include <cmath>

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

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
      for (auto name : layout.getDims()[d].getAsRange<StringAttr>())
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
  for (ArrayAttr dim : layout.getDims())
    for (auto name : dim.getAsRange<StringAttr>())
      if (axis(name.getValue()) < 0)
        return false;
  return llvm::all_of(layout.getPartial(), [&](StringAttr name) {
    return axis(name.getValue()) >= 0;
  });
}

namespace {

struct Strip {
  std::int64_t outer = 1, inner = 1;

  Strip(const std::vector<std::int64_t> &shape, std::size_t dim) {
    for (std::size_t d = 0; d < shape.size(); ++d)
      (d < dim ? outer : inner) *= d == dim ? 1 : shape[d];
  }
};

/// Returns slice number `piece` of `pieces` equal slices along `dim`.
HostTensor cut(const HostTensor &whole, std::size_t dim, std::int64_t piece,
               std::int64_t pieces) {
  std::vector<std::int64_t> shape = whole.shape;
  shape[dim] /= pieces;
  HostTensor result(shape);
  const Strip strip(shape, dim);
  const std::int64_t run = shape[dim] * strip.inner;
  for (std::int64_t o = 0; o < strip.outer; ++o)
    std::copy_n(whole.data.begin() + (o * pieces + piece) * run, run,
                result.data.begin() + o * run);
  return result;
}

HostTensor concatenate(const std::vector<HostTensor> &pieces, std::size_t dim) {
  const auto count = static_cast<std::int64_t>(pieces.size());
  std::vector<std::int64_t> shape = pieces.front().shape;
  const Strip strip(shape, dim);
  const std::int64_t run = shape[dim] * strip.inner;
  shape[dim] *= count;
  HostTensor result(shape);
  for (std::int64_t o = 0; o < strip.outer; ++o)
    for (std::int64_t i = 0; i < count; ++i)
      std::copy_n(pieces[i].data.begin() + o * run, run,
                  result.data.begin() + (o * count + i) * run);
  return result;
}

struct CollectiveRank {
  const std::vector<HostTensor> &inputs;
  std::vector<std::int64_t> group; ///< ranks, in axis order
  std::int64_t rank, place;        ///< own rank, and its position in `group`

  std::int64_t count() const { return static_cast<std::int64_t>(group.size()); }

  HostTensor reduce(bool max) const {
    HostTensor total = inputs[group.front()];
    for (std::size_t i = 1; i < group.size(); ++i)
      reduceInto(total, inputs[group[i]], max);
    return total;
  }
  HostTensor gather(std::size_t dim) const {
    std::vector<HostTensor> pieces;
    for (std::int64_t member : group)
      pieces.push_back(inputs[member]);
    return concatenate(pieces, dim);
  }
  HostTensor exchange(std::size_t split, std::size_t joined) const {
    std::vector<HostTensor> pieces;
    for (std::int64_t member : group)
      pieces.push_back(cut(inputs[member], split, place, count()));
    return concatenate(pieces, joined);
  }
};

HostTensor runOnRank(Operation *op, const CollectiveRank &self) {
  const HostTensor &own = self.inputs[self.rank];
  return llvm::TypeSwitch<Operation *, HostTensor>(op)
      .Case([&](AllReduceOp all) { return self.reduce(all.getMax()); })
      .Case([&](AllGatherOp gather) { return self.gather(gather.getDim()); })
      .Case([&](ReduceScatterOp scatter) {
        return cut(self.reduce(scatter.getMax()), scatter.getDim(), self.place,
                   self.count());
      })
      .Case([&](AllToAllOp all) {
        return self.exchange(all.getSplit(), all.getJoin());
      })
      .Case([&](SliceOp slice) {
        return cut(own, slice.getDim(), self.place, self.count());
      })
      .Default([&](Operation *) {
        // mtp.mask keeps the value on the first rank of the group.
        return self.place == 0 ? own : HostTensor(own.shape);
      });
}

/// Holds the dimension along which a collective slices (`cut`) and the
/// dimension along which it concatenates (`joined`), or -1 for none.
struct Dims {
  std::int64_t cut = -1, joined = -1;
};

Dims dimsOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, Dims>(op)
      .Case([](AllGatherOp gather) {
        return Dims{-1, static_cast<std::int64_t>(gather.getDim())};
      })
      .Case<ReduceScatterOp, SliceOp>([](auto scatter) {
        return Dims{static_cast<std::int64_t>(scatter.getDim()), -1};
      })
      .Case([](AllToAllOp all) {
        return Dims{static_cast<std::int64_t>(all.getSplit()),
                    static_cast<std::int64_t>(all.getJoin())};
      })
      .Default([](Operation *) { return Dims{}; });
}

} // namespace

StringAttr axisOfCollective(Operation *op) {
  return llvm::TypeSwitch<Operation *, StringAttr>(op)
      .Case<AllReduceOp, AllGatherOp, ReduceScatterOp, AllToAllOp, SliceOp,
            MaskOp>([](auto collective) { return collective.getAxisAttr(); })
      .Default([](Operation *) { return StringAttr(); });
}

void reduceInto(HostTensor &total, const HostTensor &term, bool max) {
  for (std::size_t i = 0; i < total.data.size(); ++i) {
    double &sum = total.data[i];
    if (!max)
      sum += term.data[i];
    else if (term.data[i] > sum || std::isnan(term.data[i]))
      sum = term.data[i];
  }
}

FailureOr<std::vector<HostTensor>>
runCollective(Operation *op, const std::vector<HostTensor> &inputs,
              const MeshView &mesh) {
  const StringAttr name = axisOfCollective(op);
  const int axis = mesh.axis(name.getValue());
  if (axis < 0)
    return op->emitOpError("runs over axis ")
           << name << ", which the mesh does not have";
  const std::vector<std::int64_t> &shape = inputs.front().shape;
  const auto rank = static_cast<std::int64_t>(shape.size());
  const Dims dims = dimsOf(op);
  if (dims.cut >= rank || dims.joined >= rank)
    return op->emitOpError("names a dimension that its tensor does not have");
  if (dims.cut >= 0 && shape[dims.cut] % mesh.sizeOf(axis) != 0)
    return op->emitOpError("cuts a dimension of ")
           << shape[dims.cut] << " into " << mesh.sizeOf(axis) << " pieces";

  std::vector<HostTensor> results;
  for (std::int64_t r = 0; r < mesh.ranks(); ++r)
    results.push_back(runOnRank(
        op, {inputs, mesh.group(r, axis), r, mesh.coordinate(r, axis)}));
  return results;
}

} // namespace mtplan::ir
