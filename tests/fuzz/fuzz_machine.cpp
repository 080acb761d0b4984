//===- fuzz_machine.cpp - Fuzzes the reader of machine files --------------===//
//
// Parsing returns a machine or throws a MachineError. A machine's text, read
// and written again, is the same bytes.
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
  // This is outside the try block, because rejecting our own text is a failure.
  const std::string once = formatMachine(machine, "fuzzing");
  const std::string twice = formatMachine(parseMachine(once), "fuzzing");
  if (once != twice)
    std::abort();
  return 0;
}
