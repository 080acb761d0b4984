//===- fuzz_measurements.cpp - Any text as a measurement file ---*- C++ -*-===//
//
// Either measurements or a MeasurementsError. Measurements are fitted: either
// figures are refused, or there is a machine, whose file is read back as it is.
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
  // Refusing our own text is a failure.
  Machine written = parseMachine(fittedMachineText(text, *fit));
  if (formatMachine(written, "") != formatMachine(fit->machine, ""))
    std::abort();
  return 0;
}
