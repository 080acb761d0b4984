//===- fuzz_manifest.cpp - Fuzzes the reader of checkpoint manifests ------===//
//
// Parsing returns a manifest or throws a CheckpointError. Most inputs have a
// wrong checksum, so each is also parsed with the right one. A manifest's text
// reads back as the same manifest.
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
  // Rejecting our own text is a failure.
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
