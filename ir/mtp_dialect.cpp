//===- mtp_dialect.cpp - Registers the dialect ----------------------------===//

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

#include "ir/mtp.h"
#include "ir/mtp_dialect.cpp.inc"
#include "ir/mtp_enums.cpp.inc"
#include "ir/mtp_interfaces.cpp.inc"
#include "ir/rules/pointwise.h"

#define GET_OP_CLASSES
#include "ir/mtp_ops.cpp.inc"

namespace mtplan::ir {

void MtpDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "ir/mtp_ops.cpp.inc"
      >();
}

std::int64_t bytesOfUses(mlir::Operation *op) {
  llvm::SmallPtrSet<void *, 8> seen;
  std::int64_t bytes = 0;
  auto count = [&](mlir::Value value) {
    auto type = llvm::dyn_cast<mlir::RankedTensorType>(value.getType());
    if (type && seen.insert(value.getAsOpaquePointer()).second)
      bytes +=
          type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
  };
  for (mlir::Value value : op->getOperands())
    count(value);
  for (mlir::Value value : op->getResults())
    count(value);
  return bytes;
}

} // namespace mtplan::ir
