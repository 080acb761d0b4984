//===- call.h - One run of a reference kernel -------------------*- C++ -*-===//
//
// What does an operator compute? The kernels of this room answer with plain
// loops over doubles, one file per family of operators. The interpreter of the
// IR and the reference backend of the runtime both run them, and tests/parity
// holds them to PyTorch. A kernel knows shapes, attributes and the piece of the
// global tensor that its rank holds. It knows no MLIR, plan, mesh or device.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_REFERENCE_CALL_H
#define MTPLAN_RUNTIME_REFERENCE_CALL_H

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/random/draws.h"
#include "runtime/reference/attributes.h"
#include "runtime/reference/pieces.h"

namespace mtplan::runtime::reference {

using Doubles = std::vector<double>;

/// The shape of a rank's tensor and, for each dimension, the piece it holds.
struct LocalShape {
  std::vector<std::int64_t> sizes;
  std::vector<Span> pieces; ///< empty: the rank holds the whole tensor
};

/// Operands, results and attributes of one run. Results are zero when a kernel
/// starts.
struct Call {
  Attributes attributes;
  Moment moment;
  std::vector<LocalShape> inShapes, outShapes;
  std::vector<std::span<const double>> in;
  std::vector<Doubles> out;

  /// Sums over samples are rounded to float as accumulators of that type are:
  /// the term of each sample, and after it the sum of each output. By default
  /// nothing is rounded.
  bool roundsTerms = false;
  std::vector<bool> roundsSums; ///< by output; empty: none

  const std::vector<std::int64_t> &inShape(std::size_t i) const {
    return inShapes[i].sizes;
  }
  const std::vector<std::int64_t> &outShape(std::size_t i) const {
    return outShapes[i].sizes;
  }
  Span inPiece(std::size_t i, std::size_t dim) const {
    return pieceOf(inShapes[i], dim);
  }
  Span outPiece(std::size_t i, std::size_t dim) const {
    return pieceOf(outShapes[i], dim);
  }

  /// Copies an operand into a result of the same number of elements.
  void copy(std::size_t input, std::size_t output) {
    out[output].assign(in[input].begin(), in[input].end());
  }

  /// Adds one sample's term to a result and sets the term to zero. Summing
  /// sample by sample makes one run of eight samples equal eight runs of one.
  void addSample(std::size_t output, Doubles &term);

private:
  static Span pieceOf(const LocalShape &shape, std::size_t dim) {
    return shape.pieces.empty() ? Span{0, shape.sizes[dim]} : shape.pieces[dim];
  }
};

} // namespace mtplan::runtime::reference

#endif // MTPLAN_RUNTIME_REFERENCE_CALL_H
