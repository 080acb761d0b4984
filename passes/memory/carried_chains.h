//===- carried_chains.h - What copies carry on ------------------*- C++ -*-===//
//
// A segment's copy finds a carried value in one entry of an array and leaves
// the next one in the next entry, so that one program serves all copies. The
// next segment of a chunk goes on where the segment before it ended. A value
// that backward reads keeps an entry for each copy; for other values two
// entries by turns are enough. A value that is carried on unchanged keeps its
// entry.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_MEMORY_CARRIED_CHAINS_H
#define MTPLAN_PASSES_MEMORY_CARRIED_CHAINS_H

#include <vector>

#include "llvm/ADT/DenseMap.h"

#include "ir/mtp.h"

namespace mtplan::passes {

/// The arrays through which a chunk carries values in one direction.
class CarriedChains {
public:
  /// The entry of a chain that a value is in, for copy c `entry + c * step`.
  struct Link {
    std::size_t chain = 0;
    std::int64_t entry = 0, step = 0;
  };
  struct Chain {
    mlir::Type type;
    std::int64_t entries = 1;
    bool saved = false; ///< backward reads a value of it
  };

  /// Each fails with a diagnostic where a value would need two places.
  mlir::LogicalResult followForward(llvm::ArrayRef<ir::SegmentOp> chunk);
  mlir::LogicalResult followBackward(llvm::ArrayRef<ir::SegmentOp> chunk);

  std::vector<Chain> chains;
  llvm::DenseMap<mlir::Value, Link> links; ///< of arguments and yielded values

private:
  Link linkTo(mlir::Value handed, std::size_t position,
              const std::vector<Link> &before, std::int64_t repeat,
              mlir::Block &block, mlir::Type type);
  void handToItself(ir::YieldOp yield, const std::vector<Link> &before,
                    std::int64_t repeat, std::int64_t step);
};

/// Whether an operation of the backward half reads `value` of the forward half.
bool isSaved(mlir::Value value);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_MEMORY_CARRIED_CHAINS_H
