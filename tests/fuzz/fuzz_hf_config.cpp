//===- fuzz_hf_config.cpp - Any text as a config.json -----------*- C++ -*-===//
//
// Either a model, which is then printed, differentiated and turned into the
// planner's graph, or lines that say why not.
//
//===----------------------------------------------------------------------===//

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/module_promises.h"
#include "tests/fuzz/reused_context.h"

using namespace mtplan;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data,
                                      std::size_t size) {
  fuzz::readsOrRefuses(fuzz::reusedContext(),
                       {reinterpret_cast<const char *>(data), size},
                       "config.json");
  return 0;
}
