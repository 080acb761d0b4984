//===- fuzz_textual_ir.cpp - Any text as a module ---------------*- C++ -*-===//
//
// A model in textual IR goes the way of every model. A module of a later stage
// is no model, but is printed, read and put to its gates all the same.
//
//===----------------------------------------------------------------------===//

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/model/load.h"
#include "ir/model/module_facts.h"
#include "tests/fuzz/module_promises.h"
#include "tests/fuzz/reused_context.h"

using namespace mtplan;

namespace {

// The loader refuses, before any parser sees it, what would exhaust one.
bool isUnparsable(const std::vector<std::string> &errors) {
  return llvm::any_of(errors, [](const std::string &line) {
    return llvm::StringRef(line).contains("levels deep");
  });
}

void putToGates(mlir::ModuleOp module) {
  mlir::OwningOpRef<mlir::ModuleOp> copy(module.clone());
  fuzz::differentiatesSoundly(*copy);
  if (!module->getAttrOfType<ir::MeshAttr>(ir::kMeshAttrName))
    return;
  mlir::PassManager gate(module.getContext());
  gate.addPass(passes::createVerifyLayoutsPass());
  (void)gate.run(module);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data,
                                      std::size_t size) {
  mlir::MLIRContext &context = fuzz::reusedContext();
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  if (!ir::looksLikeMlir(text))
    return 0;
  if (isUnparsable(fuzz::readsOrRefuses(context, text, "fuzz.mlir")))
    return 0;

  mlir::ParserConfig config(&context, /*verifyAfterParse=*/false);
  // MLIR's lexer needs the zero byte behind the text.
  auto module =
      mlir::parseSourceString<mlir::ModuleOp>(std::string(text), config);
  ir::Findings findings;
  if (!module || !ir::checkModule(*module, findings))
    return 0;
  fuzz::printsAsItReads(*module);
  putToGates(*module);
  return 0;
}
