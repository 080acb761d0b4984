//===- fuzz_textual_ir.cpp - Fuzzes the parser of textual IR --------------===//
//
// A model in textual IR is checked like every model. A module of a later
// compilation stage is no model, but is also printed, read and verified.
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

// Returns whether the loader rejected the text as nested too deep for a parser.
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
  // MLIR's lexer needs the zero byte after the text.
  auto module =
      mlir::parseSourceString<mlir::ModuleOp>(std::string(text), config);
  ir::Findings findings;
  if (!module || !ir::checkModule(*module, findings))
    return 0;
  fuzz::printsAsItReads(*module);
  putToGates(*module);
  return 0;
}
