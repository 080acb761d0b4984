//===- interpret_testing.h - Runs programs given as text --------*- C++ -*-===//
//
// Defines helpers of the interpreter's tests. They run programs given as text,
// and single operators on given tensors, which are %a, %b, ... in the text.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_IR_INTERPRET_INTERPRET_TESTING_H
#define MTPLAN_TESTS_IR_INTERPRET_INTERPRET_TESTING_H

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

#include "ir/interpret/interpret.h"
#include "ir/interpret/placement.h"
#include "tests/base/test_helpers.h"

namespace mtplan::ir {

inline HostTensor tensor(std::vector<std::int64_t> shape,
                         std::vector<double> data) {
  HostTensor result(std::move(shape));
  EXPECT_EQ(result.data.size(), data.size());
  result.data = std::move(data);
  return result;
}

class InterpretTest : public ::testing::Test {
protected:
  InterpretTest() { context.loadDialect<MtpDialect>(); }

  mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &text,
                                          bool verify = true) {
    mlir::ParserConfig config(&context, verify);
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, config);
    EXPECT_TRUE(module) << text;
    return module;
  }

  /// Returns a module whose only segment has the operands as arguments and
  /// `op`.
  mlir::OwningOpRef<mlir::ModuleOp>
  parseOp(const std::string &op, const std::vector<HostTensor> &operands) {
    std::string arguments;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      arguments += std::string(i ? ", %" : "%") + char('a' + i) + ": tensor<";
      for (std::int64_t dim : operands[i].shape)
        arguments += std::to_string(dim) + "x";
      arguments += "f64>";
    }
    return parse("mtp.segment @s (" + arguments + ") {\n" + op +
                     "\n mtp.yield\n}",
                 /*verify=*/false);
  }

  static mlir::Operation *firstOp(mlir::ModuleOp module) {
    return &llvm::cast<SegmentOp>(module.getBody()->front()).getBlock().front();
  }

  /// Runs the kernel of one operator. `edit` may change the offsets of shards.
  std::vector<HostTensor>
  evaluate(const std::string &text, const std::vector<HostTensor> &operands,
           const std::function<void(KernelCall &)> &edit = nullptr) {
    auto module = parseOp(text, operands);
    mlir::Operation *op = firstOp(*module);
    std::vector<const HostTensor *> passed;
    for (const HostTensor &operand : operands)
      passed.push_back(&operand);
    KernelCall call = callOf(op, passed);
    for (auto *shapes : {&call.inShapes, &call.outShapes})
      for (runtime::reference::LocalShape &shape : *shapes)
        for (std::int64_t size : shape.sizes)
          shape.pieces.push_back({0, size});
    if (edit)
      edit(call);
    const runtime::reference::Kernel kernel = kernelOf(op);
    EXPECT_TRUE(kernel) << text;
    if (kernel)
      kernel(call);
    return takeResults(call);
  }

  /// Runs a program, or fails the test.
  RunResult run(const std::string &text, const RunOptions &options = {}) {
    auto module = parse(text);
    auto result = interpret(*module, options);
    EXPECT_TRUE(mlir::succeeded(result)) << text;
    return mlir::succeeded(result) ? *result : RunResult();
  }

  /// Returns the diagnostic of a program that must fail.
  std::string errorOf(const std::string &text, bool verify = true,
                      const RunOptions &options = {}) {
    std::string message;
    mlir::ScopedDiagnosticHandler handler(&context,
                                          [&](mlir::Diagnostic &diagnostic) {
                                            message += diagnostic.str();
                                            return mlir::success();
                                          });
    auto module = parse(text, verify);
    EXPECT_TRUE(mlir::failed(interpret(*module, options)));
    return message;
  }

  mlir::MLIRContext context;
};

inline void expectNear(const HostTensor &actual,
                       const std::vector<double> &expected,
                       double tolerance = 1e-12) {
  ASSERT_EQ(actual.data.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(actual.data[i], expected[i], tolerance) << "element " << i;
}

} // namespace mtplan::ir

#endif // MTPLAN_TESTS_IR_INTERPRET_INTERPRET_TESTING_H
