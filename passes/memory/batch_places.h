//===- batch_places.h - Places of batched products --------------*- C++ -*-===//
//
// A library computes a batch of products if all tensors that the products do
// not share lie at even distances.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_MEMORY_BATCH_PLACES_H
#define MTPLAN_PASSES_MEMORY_BATCH_PLACES_H

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "ir/mtp.h"

namespace mtplan::passes {

/// Values that a batch needs at even distances, in the order of its products.
struct BatchRow {
  std::int64_t batch = 0;
  bool areResults = false;
  llvm::SmallVector<mlir::Value> values;
};

/// Returns the operands that the products of a batch do not share and the
/// results that they write, of all batches of a block.
std::vector<BatchRow> batchRows(mlir::Block &block);

/// Takes products out of their batch if the batch is `rejected` or if their
/// tensors are not at even distances, ascending in the order of the block;
/// neighbours that are remain a batch. O(operations of the block).
/// \param placeOf  returns the place of a value
void keepEvenBatches(mlir::Block &block, const std::set<std::int64_t> &rejected,
                     const std::function<ir::PlaceAttr(mlir::Value)> &placeOf);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_MEMORY_BATCH_PLACES_H
