//===- fuzz_software.cpp - Any text as a software file ----------*- C++ -*-===//
//
// Either software or a SoftwareError; never anything else. What was accepted is
// also written and read back: the two must agree to the byte.
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
  // Not in the try block: refusing our own text is a failure.
  const std::string once = formatSoftware(software, "fuzzing");
  const std::string twice = formatSoftware(parseSoftware(once), "fuzzing");
  if (once != twice)
    std::abort();
  return 0;
}
