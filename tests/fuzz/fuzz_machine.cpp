//===- fuzz_machine.cpp - Any text as a machine file ------------*- C++ -*-===//
//
// Either a machine or a MachineError; never anything else. What was accepted is
// also written and read back: the two must agree to the byte.
//
//===----------------------------------------------------------------------===//

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "planner/machine/machine_json.h"

using namespace mtplan::planner;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data,
                                      std::size_t size) {
  Machine machine;
  try {
    machine =
        parseMachine(std::string(reinterpret_cast<const char *>(data), size));
  } catch (const MachineError &) {
    return 0;
  }
  // Not in the try block: refusing our own text is a failure.
  const std::string once = formatMachine(machine, "fuzzing");
  const std::string twice = formatMachine(parseMachine(once), "fuzzing");
  if (once != twice)
    std::abort();
  return 0;
}
