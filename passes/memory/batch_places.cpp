//===- batch_places.cpp - Offsets of batched products ---------------------===//

#include "passes/memory/batch_places.h"

#include <map>
#include <optional>
#include <utility>

#include "mlir/IR/Builders.h"

#include "ir/decisions.h"
#include "passes/fuse/fusible.h"

using namespace mlir;

namespace mtplan::passes {

namespace {

using Products = SmallVector<ir::EinsumOp>;
using Places = SmallVector<ir::PlaceAttr>;

std::map<int64_t, Products> batchesOf(Block &block) {
  std::map<int64_t, Products> batches;
  for (auto product : block.getOps<ir::EinsumOp>())
    if (ir::batchOf(product) >= 0)
      batches[ir::batchOf(product)].push_back(product);
  return batches;
}

// Returns the results that the kernel of a product writes to memory. A result
// that only an epilogue reads is not written.
SmallVector<Value> writtenBy(ir::EinsumOp product) {
  SmallVector<Value> written;
  for (Operation *op : kernelOf(product))
    if (!llvm::isa<ir::AccumulateOp>(op) && !ir::epilogueOf(op))
      written.push_back(op->getResult(0));
  return written;
}

Places placesOf(ir::EinsumOp product,
                const std::function<ir::PlaceAttr(Value)> &placeOf) {
  Places places;
  const SmallVector<Operation *> kernel = kernelOf(product);
  for (Operation *op : kernel) {
    for (Value operand : op->getOperands())
      if (!llvm::is_contained(kernel, operand.getDefiningOp()))
        places.push_back(placeOf(operand));
    if (llvm::isa<ir::AccumulateOp>(op))
      places.push_back(llvm::cast<ir::PlaceAttr>(
          op->getAttrOfType<ArrayAttr>(ir::kPlacesAttrName)[0]));
    else if (!ir::epilogueOf(op))
      places.push_back(placeOf(op->getResult(0)));
  }
  return places;
}

// Returns the distance in bytes from one tensor to the other, or nothing if the
// distance is negative or depends on the layer or the micro-batch.
std::optional<int64_t> distance(ir::PlaceAttr from, ir::PlaceAttr to) {
  const bool isAlike = from && to && from.getArena() == to.getArena() &&
                       from.getEntries() == to.getEntries() &&
                       from.getEntryStride() == to.getEntryStride() &&
                       from.getSlots() == to.getSlots() &&
                       from.getSlotStride() == to.getSlotStride() &&
                       from.getEntry() == to.getEntry() &&
                       from.getStep() == to.getStep();
  if (!isAlike || to.getOffset() < from.getOffset())
    return std::nullopt;
  return to.getOffset() - from.getOffset();
}

std::optional<SmallVector<int64_t>> distances(const Places &from,
                                              const Places &to) {
  SmallVector<int64_t> all;
  for (auto [one, other] : llvm::zip_equal(from, to)) {
    const std::optional<int64_t> bytes = distance(one, other);
    if (!bytes)
      return std::nullopt;
    all.push_back(*bytes);
  }
  return all;
}

void mark(ArrayRef<ir::EinsumOp> products, int64_t number) {
  for (ir::EinsumOp product : products)
    product->setAttr(ir::kBatchAttrName,
                     Builder(product.getContext()).getI64IntegerAttr(number));
}

} // namespace

std::vector<BatchRow> batchRows(Block &block) {
  std::vector<BatchRow> rows;
  for (const auto &[number, products] : batchesOf(block)) {
    if (products.size() < 2)
      continue;
    ir::EinsumOp first = products[0], second = products[1];
    const bool sharesLeft = first.getLhs() == second.getLhs();
    BatchRow operands{number, false, {}};
    for (ir::EinsumOp product : products)
      operands.values.push_back(sharesLeft ? product.getRhs()
                                           : product.getLhs());
    rows.push_back(std::move(operands));
    for (std::size_t i = 0; i < writtenBy(first).size(); ++i) {
      BatchRow &results = rows.emplace_back(BatchRow{number, true, {}});
      for (ir::EinsumOp product : products)
        results.values.push_back(writtenBy(product)[i]);
    }
  }
  return rows;
}

void keepEvenBatches(Block &block, const std::set<int64_t> &rejected,
                     const std::function<ir::PlaceAttr(Value)> &placeOf) {
  const std::map<int64_t, Products> batches = batchesOf(block);
  int64_t next = 0; // first unused launch number of the block
  for (Operation &op : block)
    next = std::max(next, ir::batchOf(&op) + 1);
  for (const auto &[number, products] : batches) {
    for (ir::EinsumOp product : products)
      product->removeAttr(ir::kBatchAttrName);
    if (rejected.count(number))
      continue;
    std::vector<Places> places;
    for (ir::EinsumOp product : products)
      places.push_back(placesOf(product, placeOf));
    bool isFirst = true;
    for (std::size_t begin = 0, end = 0; begin + 1 < products.size();
         begin = end) {
      const auto step = distances(places[begin], places[begin + 1]);
      for (end = begin + 1; step && end < products.size() &&
                            distances(places[end - 1], places[end]) == step;)
        ++end;
      if (end > begin + 1)
        mark(ArrayRef(products).slice(begin, end - begin),
             std::exchange(isFirst, false) ? number : next++);
    }
  }
}

} // namespace mtplan::passes
