//===- fuzz_measurements.cpp - Fuzzes the reader of measurements ----------===//
//
// Parsing returns measurements or throws a MeasurementsError. Fitting returns
// errors or a machine, whose file reads back as the same machine.
//
//===----------------------------------------------------------------------===//

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "planner/fit/fit_machine.h"
#include "planner/fit/measurements_json.h"
#include "planner/machine/machine_json.h"

using namespace mtplan::planner;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data,
                                      std::size_t size) {
  const std::string text(reinterpret_cast<const char *>(data), size);
  Measurements measured;
  try {
    measured = parseMeasurements(text);
  } catch (const MeasurementsError &) {
    return 0;
  }
  std::vector<std::string> errors;
  std::optional<MachineFit> fit = fitMachine(measured, errors);
  if (fit.has_value() == !errors.empty())
    std::abort();
  if (!fit)
    return 0;
  // Rejecting our own text is a failure.
  Machine written = parseMachine(fittedMachineText(text, *fit));
  if (formatMachine(written, "") != formatMachine(fit->machine, ""))
    std::abort();
  return 0;
}
