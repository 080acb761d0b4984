//===- reference.h - What a plain kernel sees -------------------*- C++ -*-===//
//
// One file per family, as in the IR. A kernel is a function over doubles:
// operands come in widened, results go out rounded once to their types.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_REFERENCE_REFERENCE_H
#define MTPLAN_RUNTIME_REFERENCE_REFERENCE_H

#include <map>
#include <string>
#include <vector>

#include "runtime/backend/signature.h"

namespace mtplan::runtime::reference {

using Doubles = std::vector<double>;

/// One run. Results come as zeros, or as they are for those that add to them.
struct Call {
  const KernelSpec &spec;
  Moment moment;
  const UpdateNumbers *update = nullptr;
  const NormRule *norm = nullptr;
  std::vector<Doubles> in, out;

  const std::vector<std::int64_t> &inShape(std::size_t i) const {
    return spec.inputs[i].shape;
  }
  const std::vector<std::int64_t> &outShape(std::size_t i) const {
    return spec.outputs[i].shape;
  }
  Span inPiece(std::size_t i, std::size_t dim) const {
    return pieceOf(spec.inputs[i], dim);
  }
  Span outPiece(std::size_t i, std::size_t dim) const {
    return pieceOf(spec.outputs[i], dim);
  }

  /// Adds what one sample gives to a result, and clears it for the next. The
  /// sum so far is rounded as an accumulator of the result's type would be (of
  /// f32 for the 16-bit ones), so that samples may come in one call or several.
  void addSample(std::size_t output, Doubles &term);
};

using Function = void (*)(Call &);

/// Kernels by name. Those in `updates` find their results as they were left.
struct Table {
  std::map<std::string, Function> functions;
  std::map<std::string, Function> updates;
};

void addLinear(Table &table);
void addEmbedding(Table &table);
void addPointwise(Table &table);
void addNorm(Table &table);
void addAttention(Table &table);
void addLoss(Table &table);
void addMoe(Table &table);
void addPosition(Table &table);
void addUpdate(Table &table);

/// Calls `visit(linear, index)` for every element of `shape`, in row-major
/// order.
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

#endif // MTPLAN_RUNTIME_REFERENCE_REFERENCE_H
