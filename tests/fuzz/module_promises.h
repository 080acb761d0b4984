//===- module_promises.h - What holds for any module we accept --*- C++ -*-===//
//
// Every fuzz target that ends in a module checks the same promises, whatever
// notation the module came from. A broken promise aborts, like a crash.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_FUZZ_MODULE_PROMISES_H
#define MTPLAN_TESTS_FUZZ_MODULE_PROMISES_H

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include "ir/model/load.h"
#include "passes/layout/bridge.h"
#include "passes/passes.h"
#include "planner/graph/op_graph.h"

namespace mtplan::fuzz {

[[noreturn]] inline void broken(const char *promise, const std::string &why) {
  std::fprintf(stderr, "broken promise: %s\n%s\n", promise, why.c_str());
  std::abort();
}

inline std::string textOf(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  return text;
}

/// A printed module can be read, and is printed the same way again.
inline void printsAsItReads(mlir::ModuleOp module) {
  std::string once = textOf(module);
  mlir::ParserConfig config(module.getContext());
  auto again = mlir::parseSourceString<mlir::ModuleOp>(once, config);
  if (!again)
    broken("what is printed can be read", once);
  if (std::string twice = textOf(*again); twice != once)
    broken("printing twice gives the same text", once + "\n---\n" + twice);
}

/// Differentiation may fail, but it never gives a wrong module. Returns whether
/// `module` has backward halves now.
inline bool differentiatesSoundly(mlir::ModuleOp module) {
  mlir::PassManager passes(module.getContext());
  passes.enableVerifier(false);
  passes.addPass(passes::createDifferentiatePass());
  if (mlir::failed(passes.run(module)))
    return false;
  if (mlir::failed(mlir::verify(module)))
    broken("a differentiated module verifies", textOf(module));
  mlir::PassManager gate(module.getContext());
  gate.addPass(passes::createVerifyGradientsPass());
  return mlir::succeeded(gate.run(module));
}

/// The planner only gets sound graphs.
inline void hasSoundGraph(mlir::ModuleOp module) {
  std::string lines;
  for (const std::string &line :
       planner::check(passes::buildModelGraph(module)))
    lines += line + '\n';
  if (!lines.empty())
    broken("the graph of a differentiated model is sound",
           lines + textOf(module));
}

/// Checks all of the above for an accepted model.
inline void keepsPromises(ir::LoadedModel &model) {
  if (model.name.empty() || model.parameters < 0)
    broken("a model has a name and a number of parameters", model.name);
  printsAsItReads(*model.module);
  if (differentiatesSoundly(*model.module))
    hasSoundGraph(*model.module);
}

/// Reads `text` as a model in any notation. Returns why it was refused, which
/// is nothing if, and only if, it was read.
inline std::vector<std::string> readsOrRefuses(mlir::MLIRContext &context,
                                               llvm::StringRef text,
                                               llvm::StringRef fileName) {
  std::vector<std::string> errors;
  std::optional<ir::LoadedModel> model =
      ir::loadModel(context, text, fileName, ir::ShapeOverrides(), errors);
  if (model.has_value() != errors.empty())
    broken("a model is read or refused with a reason", fileName.str());
  if (model)
    keepsPromises(*model);
  return errors;
}

} // namespace mtplan::fuzz

#endif // MTPLAN_TESTS_FUZZ_MODULE_PROMISES_H
