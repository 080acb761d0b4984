//===- reused_context.h - One MLIR context for many inputs ------*- C++ -*-===//
//
// Creating a context takes longer than most inputs. But a context keeps every
// name, type and attribute it has seen, so it is replaced after 256 inputs.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_FUZZ_REUSED_CONTEXT_H
#define MTPLAN_TESTS_FUZZ_REUSED_CONTEXT_H

#include <memory>

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include "ir/mtp.h"

namespace mtplan::fuzz {

/// Returns a context with the mtp dialect, without threads. Diagnostics are
/// dropped. Objects made in the context are valid until the next call.
inline mlir::MLIRContext &reusedContext() {
  constexpr int kInputsPerContext = 256;
  static std::unique_ptr<mlir::MLIRContext> context;
  static int inputs = 0;
  if (!context || ++inputs == kInputsPerContext) {
    context = std::make_unique<mlir::MLIRContext>(
        mlir::MLIRContext::Threading::DISABLED);
    context->getOrLoadDialect<ir::MtpDialect>();
    context->getDiagEngine().registerHandler(
        [](mlir::Diagnostic &) { return mlir::success(); });
    inputs = 0;
  }
  return *context;
}

} // namespace mtplan::fuzz

#endif // MTPLAN_TESTS_FUZZ_REUSED_CONTEXT_H
