//===- fuzz_software.cpp - Any text as a software file ----------*- C++ -*-===//
//
// Any text gives software or a SoftwareError, and nothing else. Accepted
// software is also written and read back, and both texts must agree to the
// byte.
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
