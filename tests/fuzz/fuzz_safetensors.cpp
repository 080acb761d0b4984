//===- fuzz_safetensors.cpp - Fuzzes the reader of safetensors ------------===//
//
// The first byte selects how the rest is read: as a file, as a header's JSON
// (after a 16-bit number of data bytes, so that lengths are consistent), or as
// the index of several files. Accepted input is written and reads back equal.
//
//===----------------------------------------------------------------------===//

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/files.h"
#include "runtime/safetensors/header.h"
#include "runtime/safetensors/model_files.h"

using namespace mtplan::runtime;

namespace {

void require(bool holds) {
  if (!holds)
    std::abort();
}

/// Reads `start` as the first bytes of a file of `size`.
SafetensorsHeader parse(std::string_view start, std::int64_t size) {
  // The buffer ends at the last byte, so that a sanitizer sees overruns.
  const std::vector<char> exact(start.begin(), start.end());
  return parseHeader("x", std::as_bytes(std::span(exact)), size);
}

void readFile(std::string_view start, std::int64_t size) {
  const SafetensorsHeader header = parse(start, size);
  // Every byte after the header belongs to exactly one tensor.
  std::int64_t next = 0;
  for (const SafeTensor &tensor : header.tensors) {
    require(tensor.begin == next && tensor.end >= next);
    require(bytesOf(tensor.type, tensor.shape) == tensor.bytes());
    require(header.find(tensor.name) == &tensor);
    next = tensor.end;
  }
  require(header.dataStart + next == size);

  SafetensorsHeader written = header;
  const std::string bytes = layOut(written);
  require(bytes.size() % 8 == 0);
  require(written.dataStart == static_cast<std::int64_t>(bytes.size()));
  SafetensorsHeader again = parse(bytes, written.dataStart + next);
  require(again == written);
  require(again.tensors == header.tensors);
  require(again.metadata == header.metadata);
  require(layOut(again) == bytes);
}

void readHeaderText(std::string_view input) {
  std::uint16_t dataBytes = 0;
  if (input.size() < sizeof(dataBytes))
    return;
  std::memcpy(&dataBytes, input.data(), sizeof(dataBytes));
  const std::string_view json = input.substr(sizeof(dataBytes));
  const std::uint64_t length = json.size();
  std::string start(reinterpret_cast<const char *>(&length), sizeof(length));
  start += json;
  readFile(start, static_cast<std::int64_t>(start.size() + dataBytes));
}

void readIndexText(std::string_view text) {
  const ShardIndex index = parseIndex("x", text);
  for (const auto &[tensor, file] : index.weightMap)
    require(!file.empty() && file.find('/') == std::string::npos);
  const std::string written = writeIndex(index);
  require(parseIndex("x", written) == index);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data,
                                      std::size_t size) {
  if (size == 0)
    return 0;
  const std::string_view input(reinterpret_cast<const char *>(data) + 1,
                               size - 1);
  try {
    switch (data[0] % 3) {
    case 0:
      readFile(input, static_cast<std::int64_t>(input.size()));
      break;
    case 1:
      readHeaderText(input);
      break;
    case 2:
      readIndexText(input);
      break;
    }
  } catch (const DataError &error) {
    // The message is short, however long a name is.
    const std::size_t length = std::strlen(error.what());
    require(length > 0 && length < 4000);
  }
  return 0;
}
