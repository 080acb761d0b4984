//===- measurements_json.h - Measurement files ------------------*- C++ -*-===//
//
// A measurement file is a machine file in which figures may be the word "fit",
// and lists of measurements. docs/measurements-format.md describes it.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_FIT_MEASUREMENTS_JSON_H
#define MTPLAN_PLANNER_FIT_MEASUREMENTS_JSON_H

#include <stdexcept>
#include <string>

#include "planner/fit/fit_machine.h"

namespace mtplan::planner {

/// A measurement file that cannot be used. what() is every violation, one a
/// line, each starting with the JSON pointer of the offending value.
class MeasurementsError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// \throws MeasurementsError with every violation
Measurements parseMeasurements(const std::string &text);

/// Returns the machine file: /machine of the measurement file `text` with the
/// fitted figures in place of "fit". parseMachine returns fit.machine.
std::string fittedMachineText(const std::string &text, const MachineFit &fit);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_FIT_MEASUREMENTS_JSON_H
