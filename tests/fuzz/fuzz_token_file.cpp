//===- fuzz_token_file.cpp - Fuzzes the reader of token files -------------===//
//
// The first byte selects the format of the rest. A file that opens is read to
// its end, which returns tokens or throws a DataError, without reading beyond
// the file.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "runtime/data/token_file.h"
#include "tests/fuzz/memory_file.h"

using mtplan::MemoryFile;
using namespace mtplan::runtime;

namespace {

void readAll(const std::string &path, TokenFormat format) {
  const TokenFile file = TokenFile::open(path, format);
  std::vector<std::int32_t> tokens(7);
  for (std::int64_t first = 0; first < file.tokens();
       first += static_cast<std::int64_t>(tokens.size())) {
    tokens.resize(static_cast<std::size_t>(
        std::min<std::int64_t>(7, file.tokens() - first)));
    file.read(first, tokens, INT64_MAX);
  }
}

/// Checks that an accepted index names only bytes within the .bin file.
void readIndex(const std::string &path) {
  constexpr std::int64_t kBinBytes = 12;
  const MegatronIndex index(path);
  index.check("tokens.bin", kBinBytes);
  for (std::int64_t i = 0; i < index.sequences(); ++i)
    if (index.length(i) < 0 || index.offset(i) < 0 ||
        index.offset(i) + index.length(i) * bytesOf(index.kind()) > kBinBytes)
      std::abort();
  for (std::int64_t i = 0; i <= index.documents(); ++i)
    if (index.firstSequence(i) < 0 ||
        index.firstSequence(i) > index.sequences())
      std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data,
                                      std::size_t size) {
  if (size == 0)
    return 0;
  const MemoryFile file(data + 1, size - 1);
  try {
    switch (data[0] % 5) {
    case 0:
      readIndex(file.path());
      break;
    case 1:
      readAll(file.path(), TokenFormat::llmc);
      break;
    case 2:
      readAll(file.path(), TokenFormat::uint32);
      break;
    case 3:
      readAll(file.path(), TokenFormat::uint16);
      break;
    case 4:
      readAll(file.path(), detectTokenFormat(file.path()));
      break;
    }
  } catch (const DataError &) {
    // Rejecting the input is correct.
  }
  return 0;
}
