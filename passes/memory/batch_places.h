//===- batch_places.h - Offsets of batched products -------------*- C++ -*-===//
//
// A library can compute products as a batch if the tensors that the products do
// not share are at equal distances in memory (a strided batch).
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

/// Lists values that must be at equal distances in memory: one operand or
/// result of each product of a batch, in the order of the products.
struct BatchRow {
  std::int64_t batch = 0;
  bool areResults = false;
  llvm::SmallVector<mlir::Value> values;
};

/// Returns, for all batches of a block, the operands that the products of a
/// batch do not share, and the results that the products write.
std::vector<BatchRow> batchRows(mlir::Block &block);

/// Removes products from their batch if the batch is `rejected` or if the
/// offsets of their tensors do not ascend by equal distances in the order of
/// the block. Consecutive products whose tensors are at equal distances remain
/// a batch. The time is linear in the operations of the block.
/// \param placeOf  returns the PlaceAttr of a value
void keepEvenBatches(mlir::Block &block, const std::set<std::int64_t> &rejected,
                     const std::function<ir::PlaceAttr(mlir::Value)> &placeOf);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_MEMORY_BATCH_PLACES_H
