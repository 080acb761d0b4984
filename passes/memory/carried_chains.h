//===- carried_chains.h - Values carried from layer to layer ----*- C++ -*-===//
//
// A layer reads a carried value from one entry of an array and writes the value
// for the next layer to the next entry, so that all repeated layers run the
// same program. The next segment of a chunk continues the array. A value that
// backward reads has an entry per layer; other values alternate between two
// entries. A value that is yielded unchanged keeps its entry.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_MEMORY_CARRIED_CHAINS_H
#define MTPLAN_PASSES_MEMORY_CARRIED_CHAINS_H

#include <vector>

#include "llvm/ADT/DenseMap.h"

#include "ir/mtp.h"

namespace mtplan::passes {

class CarriedChains {
public:
  /// Holds the location of a value in a chain. In layer c, the value is in
  /// entry `entry + c * step` of the chain.
  struct Link {
    std::size_t chain = 0;
    std::int64_t entry = 0, step = 0;
  };
  struct Chain {
    mlir::Type type;
    std::int64_t entries = 1;
    bool saved = false; ///< whether backward reads one of the values
  };

  /// These methods set the chains and links of a chunk in one direction. The
  /// methods fail, with a diagnostic, if a segment yields one value at two
  /// positions, a parameter, or an argument at another position than its own.
  mlir::LogicalResult followForward(llvm::ArrayRef<ir::SegmentOp> chunk);
  mlir::LogicalResult followBackward(llvm::ArrayRef<ir::SegmentOp> chunk);

  std::vector<Chain> chains;
  llvm::DenseMap<mlir::Value, Link> links;

private:
  Link linkTo(mlir::Value yielded, std::size_t position,
              const std::vector<Link> &before, std::int64_t repeat,
              mlir::Block &block, mlir::Type type);
  void linkLayersOfLast(ir::YieldOp yield, const std::vector<Link> &before,
                        std::int64_t repeat, std::int64_t step);
};

/// Returns whether the backward half reads `value` of the forward half.
bool isSaved(mlir::Value value);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_MEMORY_CARRIED_CHAINS_H
