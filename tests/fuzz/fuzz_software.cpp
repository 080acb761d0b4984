//===- fuzz_software.cpp - Fuzzes the reader of software files ------------===//
//
// Parsing returns software or throws a SoftwareError. The software's text, read
// and written again, is the same bytes.
//
//===----------------------------------------------------------------------===//

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "planner/machine/software_json.h"

using namespace mtplan::planner;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data,
                                      std::size_t size) {
  Software software;
  try {
    software =
        parseSoftware(std::string(reinterpret_cast<const char *>(data), size));
  } catch (const SoftwareError &) {
    return 0;
  }
  // This is outside the try block, because rejecting our own text is a failure.
  const std::string once = formatSoftware(software, "fuzzing");
  const std::string twice = formatSoftware(parseSoftware(once), "fuzzing");
  if (once != twice)
    std::abort();
  return 0;
}
