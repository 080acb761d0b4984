//===- measurements_json.h - Measurement files ------------------*- C++ -*-===//
//
// A measurement file is a machine file in which figures may be the word "fit",
// and lists of what was run. docs/measurements-format.md.
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

/// The machine file: /machine of the measurement file `text` with what was
/// found in place of "fit". parseMachine gives fit.machine back.
std::string fittedMachineText(const std::string &text, const MachineFit &fit);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_FIT_MEASUREMENTS_JSON_H
