//===- module_promises.h - Properties of every accepted module --*- C++ -*-===//
//
// Defines properties that every fuzz target with a module checks, whatever the
// source format. A violation aborts, like a crash.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_FUZZ_MODULE_PROMISES_H
#define MTPLAN_TESTS_FUZZ_MODULE_PROMISES_H

#include <cstddef>
#include <cstdint>
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
#include "tests/fuzz/reused_context.h"
#include "tests/planner/graph_check.h"

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

/// Checks that a printed module can be read and prints the same again.
inline void printsAsItReads(mlir::ModuleOp module) {
  std::string once = textOf(module);
  mlir::ParserConfig config(module.getContext());
  auto again = mlir::parseSourceString<mlir::ModuleOp>(once, config);
  if (!again)
    broken("what is printed can be read", once);
  if (std::string twice = textOf(*again); twice != once)
    broken("printing twice gives the same text", once + "\n---\n" + twice);
}

/// Checks that differentiation fails or gives a valid module. Returns whether
/// `module` now has backward halves.
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

/// Checks that the planner's graph of the module is valid.
inline void hasSoundGraph(mlir::ModuleOp module) {
  std::string lines;
  for (const std::string &line :
       planner::check(passes::buildModelGraph(module)))
    lines += line + '\n';
  if (!lines.empty())
    broken("the graph of a differentiated model is sound",
           lines + textOf(module));
}

/// Makes all checks above for an accepted model.
inline void keepsPromises(ir::LoadedModel &model) {
  if (model.name.empty() || model.parameters < 0)
    broken("a model has a name and a number of parameters", model.name);
  printsAsItReads(*model.module);
  if (differentiatesSoundly(*model.module))
    hasSoundGraph(*model.module);
}

/// Loads `text` as a model in any format and checks it. Returns the errors;
/// there are none if and only if the model was loaded.
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

/// Calls readsOrRefuses() for a fuzzer's input. Textual IR is skipped, because
/// fuzz_textual_ir tests it.
inline int readsOrRefusesJson(const std::uint8_t *data, std::size_t size,
                              llvm::StringRef fileName) {
  const llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  if (!ir::looksLikeMlir(text))
    readsOrRefuses(reusedContext(), text, fileName);
  return 0;
}

} // namespace mtplan::fuzz

#endif // MTPLAN_TESTS_FUZZ_MODULE_PROMISES_H
