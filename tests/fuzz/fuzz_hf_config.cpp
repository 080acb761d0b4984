//===- fuzz_hf_config.cpp - Fuzzes the reader of config.json --------------===//
//
// Loading returns errors or a model, which is then printed, differentiated and
// turned into the planner's graph.
//
//===----------------------------------------------------------------------===//

#include "tests/fuzz/module_promises.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data,
                                      std::size_t size) {
  return mtplan::fuzz::readsOrRefusesJson(data, size, "config.json");
}
