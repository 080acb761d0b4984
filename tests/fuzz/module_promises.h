//===- module_promises.h - What holds for any module we accept --*- C++ -*-===//
//
// Fuzz targets that end in a module hold it to the same promises, whatever
// notation it came from. A promise that is broken aborts, as a crash would.
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

/// What is printed can be read, and is the same module.
inline void printsAsItReads(mlir::ModuleOp module) {
  std::string once = textOf(module);
  mlir::ParserConfig config(module.getContext());
  auto again = mlir::parseSourceString<mlir::ModuleOp>(once, config);
  if (!again)
    broken("what is printed can be read", once);
  if (std::string twice = textOf(*again); twice != once)
    broken("printing twice gives the same text", once + "\n---\n" + twice);
}

/// Backward halves can be refused, but are never wrong. True if `module` has
/// them now.
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

/// The planner is handed nothing but sound graphs.
inline void hasSoundGraph(mlir::ModuleOp module) {
  std::string lines;
  for (const std::string &line :
       planner::check(passes::buildModelGraph(module)))
    lines += line + '\n';
  if (!lines.empty())
    broken("the graph of a differentiated model is sound",
           lines + textOf(module));
}

/// A model that was accepted, held to all of the above.
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
