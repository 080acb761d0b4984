//===- fuzz_manifest.cpp - Any text as a checkpoint's manifest --*- C++ -*-===//
//
// Either a manifest or a CheckpointError. Most texts do not have their
// checksum, so each is also read with that put right. What is read is written
// and read back the same.
//
//===----------------------------------------------------------------------===//

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "runtime/checkpoint/manifest.h"
#include "runtime/data/digest.h"

using namespace mtplan::runtime;

namespace {

void read(const std::string &text) {
  Manifest manifest;
  try {
    manifest = parseManifest("fuzz", text);
  } catch (const CheckpointError &) {
    return;
  }
  // Refusing our own text is a failure.
  if (parseManifest("fuzz", manifestText(manifest)) != manifest)
    std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data,
                                      std::size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size);
  read(text);
  constexpr std::string_view kKey = "\"checksum\": \"";
  if (const std::size_t at = text.find(kKey); at != std::string::npos) {
    const std::size_t from = at + kKey.size();
    if (const std::size_t end = text.find('"', from); end != std::string::npos)
      text.erase(from, end - from);
    text.insert(from, textOf(digestOf(text)));
    read(text);
  }
  return 0;
}
