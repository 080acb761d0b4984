//===- kernels.h - The reference kernels ------------------------*- C++ -*-===//
//
// These kernels define the result of each operator by plain loops over doubles,
// with one file per family of operators. The interpreter of the IR and the
// reference backend of the runtime run the kernels, and tests/parity compares
// the kernels with PyTorch. A kernel depends on shapes, on attributes and on
// its rank's shard of the global tensor. It does not depend on MLIR, plans,
// meshes or devices.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_REFERENCE_KERNELS_H
#define MTPLAN_RUNTIME_REFERENCE_KERNELS_H

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "runtime/random/draws.h"

namespace mtplan::runtime::reference {

/// Holds the attributes of an operator, named as in the IR. The value of a flag
/// is 0 or 1. The value of an enumeration is the keyword in the IR.
class Attributes {
public:
  using Value = std::variant<std::int64_t, double, std::string>;

  void set(const std::string &name, Value value) {
    values[name] = std::move(value);
  }

  /// These functions return the value of an attribute. If the attribute is
  /// missing, they return `absent`, an empty text or false, respectively.
  /// \throws std::bad_variant_access if the attribute has another type
  std::int64_t integer(const std::string &name, std::int64_t absent) const {
    return valueOf(name, absent);
  }
  double number(const std::string &name, double absent) const {
    return valueOf(name, absent);
  }
  std::string text(const std::string &name) const {
    return valueOf(name, std::string());
  }
  bool flag(const std::string &name) const { return integer(name, 0) != 0; }

private:
  template <typename T> T valueOf(const std::string &name, T absent) const {
    const auto found = values.find(name);
    return found == values.end() ? absent : std::get<T>(found->second);
  }

  std::map<std::string, Value> values;
};

/// Describes a rank's range of one dimension of a tensor.
struct Span {
  std::int64_t offset = 0; ///< first global index
  std::int64_t global = 1; ///< global size
};

/// Returns the row-major index in the global tensor of the element that has
/// index `local` in the shard.
inline std::int64_t globalIndex(std::span<const Span> pieces,
                                std::span<const std::int64_t> local) {
  std::int64_t index = 0;
  for (std::size_t d = 0; d < pieces.size(); ++d)
    index = index * pieces[d].global + pieces[d].offset + local[d];
  return index;
}

/// Calls `visit(linear, index)` for every element, in row-major order.
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

using Doubles = std::vector<double>;

struct LocalShape {
  std::vector<std::int64_t> sizes;
  std::vector<Span> pieces; ///< empty if the tensor is not sharded
};

/// Holds the operands, results and attributes of one run. Results must be zero
/// when a kernel starts.
struct Call {
  Attributes attributes;
  Moment moment;
  std::vector<LocalShape> inShapes, outShapes;
  std::vector<std::span<const double>> in;
  std::vector<Doubles> out;

  /// Makes sums over samples round like an accumulator in f32. `roundsTerms`
  /// rounds each sample's term to float, and `roundsSums` rounds the sum after
  /// each sample. By default nothing is rounded.
  bool roundsTerms = false;
  std::vector<bool> roundsSums; ///< one per result; empty if all false

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

  void copy(std::size_t input, std::size_t output) {
    out[output].assign(in[input].begin(), in[input].end());
  }

  /// Adds one sample's term to a result and sets the term to zero. Adding
  /// samples one by one makes one run of eight samples equal to eight runs of
  /// one sample.
  void addSample(std::size_t output, Doubles &term);

private:
  static Span pieceOf(const LocalShape &shape, std::size_t dim) {
    return shape.pieces.empty() ? Span{0, shape.sizes[dim]} : shape.pieces[dim];
  }
};

using Kernel = void (*)(Call &);
using KernelTable = std::map<std::string, Kernel>;

/// Returns all kernels by the mnemonic of their operator.
const KernelTable &kernels();

void addLinear(KernelTable &table);
void addEmbedding(KernelTable &table);
void addPointwise(KernelTable &table);
void addNorm(KernelTable &table);
void addAttention(KernelTable &table);
void addLoss(KernelTable &table);
void addMoe(KernelTable &table);

/// Returns the row of T5's relative attention bias (Raffel et al. 2020, section
/// 2.1) for a key `distance` positions after its query. The result is below
/// `rows`. If `both`, the first half of the rows is for keys up to the query,
/// and the second half is for keys after the query. Otherwise all rows are for
/// keys up to the query, and keys after the query have the row of distance 0.
/// Among the rows of one direction, each row of the first half is for one
/// distance, and the other rows are for ranges whose bounds grow exponentially.
/// The last row is for all distances from `maxDistance` on.
inline std::int64_t relativeBucket(std::int64_t distance, std::int64_t rows,
                                   std::int64_t maxDistance, bool both) {
  std::int64_t first = 0;
  if (both) {
    rows /= 2;
    first = distance > 0 ? rows : 0;
  }
  const std::int64_t past =
      both ? std::abs(distance) : std::max<std::int64_t>(0, -distance);
  const std::int64_t exact = rows / 2;
  if (past < exact)
    return first + past;
  const double grown =
      std::log(static_cast<double>(past) / static_cast<double>(exact)) /
      std::log(static_cast<double>(maxDistance) / static_cast<double>(exact)) *
      static_cast<double>(rows - exact);
  // If every distance below `maxDistance` has a row, there are no logarithmic
  // ranges.
  const bool beyond = maxDistance <= exact;
  return first +
         std::min(rows - 1,
                  beyond ? past : exact + static_cast<std::int64_t>(grown));
}

} // namespace mtplan::runtime::reference

#endif // MTPLAN_RUNTIME_REFERENCE_KERNELS_H
