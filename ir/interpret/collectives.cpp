//===- collectives.cpp - What ranks pass to each other --------------------===//

#include "ir/interpret/collectives.h"

#include <cmath>

#include "llvm/ADT/TypeSwitch.h"

namespace mtplan::ir {
namespace {

/// The view of a tensor as [outer, dim, inner].
struct Strip {
  std::int64_t outer = 1, inner = 1;

  Strip(const std::vector<std::int64_t> &shape, std::size_t dim) {
    for (std::size_t d = 0; d < shape.size(); ++d)
      (d < dim ? outer : inner) *= d == dim ? 1 : shape[d];
  }
};

/// Returns piece `piece` of `pieces` along `dim`.
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

/// Concatenates the pieces along `dim`.
HostTensor join(const std::vector<HostTensor> &pieces, std::size_t dim) {
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

/// The view that one rank has of a collective.
struct Seat {
  const std::vector<HostTensor> &inputs;
  std::vector<std::int64_t> group; ///< ranks, in axis order
  std::int64_t rank, place;        ///< own number, and position in the group

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
    return join(pieces, dim);
  }
  HostTensor exchange(std::size_t split, std::size_t joined) const {
    std::vector<HostTensor> pieces;
    for (std::int64_t member : group)
      pieces.push_back(cut(inputs[member], split, place, count()));
    return join(pieces, joined);
  }
};

HostTensor runSeat(mlir::Operation *op, const Seat &seat) {
  const HostTensor &own = seat.inputs[seat.rank];
  return llvm::TypeSwitch<mlir::Operation *, HostTensor>(op)
      .Case([&](AllReduceOp all) { return seat.reduce(all.getMax()); })
      .Case([&](AllGatherOp gather) { return seat.gather(gather.getDim()); })
      .Case([&](ReduceScatterOp scatter) {
        return cut(seat.reduce(scatter.getMax()), scatter.getDim(), seat.place,
                   seat.count());
      })
      .Case([&](AllToAllOp all) {
        return seat.exchange(all.getSplit(), all.getJoin());
      })
      .Case([&](SliceOp slice) {
        return cut(own, slice.getDim(), seat.place, seat.count());
      })
      .Default([&](mlir::Operation *) {
        // mtp.mask
        return seat.place == 0 ? own : HostTensor(own.shape);
      });
}

/// The dimension that is cut and the one that is concatenated, or -1 for
/// neither.
struct Dims {
  std::int64_t cut = -1, joined = -1;
};

Dims dimsOf(mlir::Operation *op) {
  return llvm::TypeSwitch<mlir::Operation *, Dims>(op)
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
      .Default([](mlir::Operation *) { return Dims{}; });
}

} // namespace

mlir::StringAttr axisOfCollective(mlir::Operation *op) {
  return llvm::TypeSwitch<mlir::Operation *, mlir::StringAttr>(op)
      .Case<AllReduceOp, AllGatherOp, ReduceScatterOp, AllToAllOp, SliceOp,
            MaskOp>([](auto collective) { return collective.getAxisAttr(); })
      .Default([](mlir::Operation *) { return mlir::StringAttr(); });
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

mlir::FailureOr<std::vector<HostTensor>>
runCollective(mlir::Operation *op, const std::vector<HostTensor> &inputs,
              const MeshView &mesh) {
  const mlir::StringAttr name = axisOfCollective(op);
  const int axis = mesh.axis(name.getValue());
  if (axis < 0)
    return op->emitOpError("runs over axis ")
           << name << ", which the mesh has not";
  const std::vector<std::int64_t> &shape = inputs.front().shape;
  const auto rank = static_cast<std::int64_t>(shape.size());
  const Dims dims = dimsOf(op);
  if (dims.cut >= rank || dims.joined >= rank)
    return op->emitOpError("names a dimension that its tensor has not");
  if (dims.cut >= 0 && shape[dims.cut] % mesh.sizeOf(axis) != 0)
    return op->emitOpError("cuts a dimension of ")
           << shape[dims.cut] << " into " << mesh.sizeOf(axis) << " pieces";

  std::vector<HostTensor> results;
  for (std::int64_t r = 0; r < mesh.ranks(); ++r)
    results.push_back(runSeat(
        op, {inputs, mesh.group(r, axis), r, mesh.coordinate(r, axis)}));
  return results;
}

} // namespace mtplan::ir
