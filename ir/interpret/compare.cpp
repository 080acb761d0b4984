//===- compare.cpp - Do two runs agree? -----------------------------------===//

#include "ir/interpret/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "ir/interpret/collectives.h"
#include "ir/interpret/mesh_view.h"

namespace mtplan::ir {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kFloor = 1e-5;

double largestIn(const HostTensor &tensor) {
  double largest = 0.0;
  for (double x : tensor.data)
    largest = std::max(largest, std::abs(x));
  return largest;
}

double largestIn(const TensorTable &table) {
  double largest = 0.0;
  for (const auto &[key, tensor] : table)
    for (const HostTensor &piece : tensor.ranks)
      largest = std::max(largest, largestIn(piece));
  return largest;
}

/// Returns the piece that `rank` would hold if the tensor were not partial.
HostTensor reduced(const DistributedTensor &tensor, const MeshView &mesh,
                   std::int64_t rank) {
  std::vector<std::int64_t> members{rank};
  const bool max = tensor.layout && tensor.layout.getMax();
  if (tensor.layout)
    for (mlir::StringAttr name : tensor.layout.getPartial()) {
      std::vector<std::int64_t> more;
      for (std::int64_t member : members)
        for (std::int64_t other :
             mesh.group(member, mesh.axis(name.getValue())))
          more.push_back(other);
      members = std::move(more);
    }
  HostTensor total = tensor.ranks[members.front()];
  for (std::size_t i = 1; i < members.size(); ++i)
    reduceInto(total, tensor.ranks[members[i]], max);
  return total;
}

/// Returns the largest difference between a piece and its slice of `logical`.
double differenceOf(const HostTensor &logical, const HostTensor &piece,
                    const std::vector<Span> &spans) {
  if (logical.shape.size() != piece.shape.size())
    return kInfinity;
  for (std::size_t d = 0; d < spans.size(); ++d)
    if (spans[d].global != logical.shape[d])
      return kInfinity;
  double worst = 0.0;
  forEachIndex(piece.shape, [&](std::size_t i, const auto &index) {
    const double difference =
        std::abs(piece.data[i] - logical.data[globalIndex(spans, index)]);
    worst = std::isnan(difference) ? kInfinity : std::max(worst, difference);
  });
  return worst;
}

class Comparer {
public:
  explicit Comparer(MeshAttr meshAttr) : mesh(meshAttr) {}

  void compare(const TensorTable &logical, const TensorTable &partitioned,
               llvm::StringRef kind);

  Comparison found;

private:
  void note(double error, llvm::StringRef kind, const TensorKey &key,
            std::int64_t rank);

  const MeshView mesh;
};

void Comparer::note(double error, llvm::StringRef kind, const TensorKey &key,
                    std::int64_t rank) {
  if (error <= found.worst)
    return;
  // The quotient is NaN where the logical tensor itself is infinite.
  found.worst = std::isnan(error) ? kInfinity : error;
  found.kind = kind.str();
  found.name = key.name();
  found.rank = rank;
}

void Comparer::compare(const TensorTable &logical,
                       const TensorTable &partitioned, llvm::StringRef kind) {
  const double floor = kFloor * largestIn(logical);
  std::set<TensorKey> keys;
  for (const TensorTable *table : {&logical, &partitioned})
    for (const auto &[key, tensor] : *table)
      keys.insert(key);

  for (const TensorKey &key : keys) {
    ++found.tensors;
    const auto whole = logical.find(key), split = partitioned.find(key);
    if (whole == logical.end() || split == partitioned.end()) {
      note(kInfinity, kind, key, 0);
      continue;
    }
    const HostTensor &expected = whole->second.ranks.front();
    const DistributedTensor &tensor = split->second;
    const double norm = std::max(largestIn(expected), floor);
    for (std::int64_t rank = 0; rank < mesh.ranks(); ++rank) {
      if (!tensor.holds(rank))
        continue;
      const HostTensor piece = reduced(tensor, mesh, rank);
      const double difference = differenceOf(
          expected, piece, mesh.piecesOf(tensor.layout, rank, piece.shape));
      // All tensors of a kind may be zero. Then any difference counts as
      // infinite.
      note(difference == 0.0 ? 0.0 : difference / norm, kind, key, rank);
    }
  }
}

} // namespace

Comparison compareRuns(const RunResult &logical, const RunResult &partitioned) {
  Comparer comparer(partitioned.mesh);
  comparer.compare(logical.results, partitioned.results, "result");
  comparer.compare(logical.gradients, partitioned.gradients, "gradient");
  comparer.compare(logical.parameters, partitioned.parameters, "parameter");
  return comparer.found;
}

} // namespace mtplan::ir
