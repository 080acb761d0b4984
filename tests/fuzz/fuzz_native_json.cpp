//===- fuzz_native_json.cpp - Any text as a native model --------*- C++ -*-===//
//
// Either a model, which is then printed, differentiated and turned into the
// planner's graph, or lines that say why not.
//
//===----------------------------------------------------------------------===//

#include <cstddef>
#include <cstdint>

#include "ir/model/load.h"
#include "tests/fuzz/module_promises.h"
#include "tests/fuzz/reused_context.h"

using namespace mtplan;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data,
                                      std::size_t size) {
  const llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  if (!ir::looksLikeMlir(text)) // that is fuzz_textual_ir's
    fuzz::readsOrRefuses(fuzz::reusedContext(), text, "fuzz.json");
  return 0;
}
