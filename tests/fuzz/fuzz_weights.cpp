//===- fuzz_weights.cpp - Fuzzes the reader of other tools' weights -------===//
//
// Opening returns the weights of llm.c or Hugging Face, or throws an error. All
// tensors can be read, and the original names and formats are kept.
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
    return 0; // Rejecting the input is correct.
  } catch (const WeightError &) {
    return 0;
  }
  readAll(*source);
  return 0;
}
