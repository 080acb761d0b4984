//===- fuzz_weights.cpp - Any bytes as somebody else's weights --*- C++ -*-===//
//
// A model of llm.c or of Hugging Face's, or a message that says why not. All
// of its parameters can be read, and how it was spelled is kept and read back.
//
//===----------------------------------------------------------------------===//

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "runtime/exchange/weight_source.h"
#include "runtime/weights/weight_rules.h"
#include "tests/fuzz/memory_file.h"

using namespace mtplan::runtime;

namespace {

void readAll(const WeightSource &source) {
  for (const auto &[name, tensor] : source.tensors())
    if (static_cast<std::int64_t>(source.read(name).size()) !=
        tensor.elements() * bytesOf(tensor.type))
      std::abort();
  const Origin again = readOrigin("origin", originTexts(*source.origin()));
  if (again.names() != source.origin()->names() ||
      again.llmc != source.origin()->llmc)
    std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data,
                                      std::size_t size) {
  const mtplan::MemoryFile file(data, size);
  std::unique_ptr<WeightSource> source;
  try {
    source = openWeights(file.path());
  } catch (const DataError &) {
    return 0; // said what is wrong
  } catch (const WeightError &) {
    return 0;
  }
  readAll(*source);
  return 0;
}
