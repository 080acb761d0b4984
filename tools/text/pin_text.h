//===- pin_text.h - Pins as they are typed ----------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_TEXT_PIN_TEXT_H
#define MTPLAN_TOOLS_TEXT_PIN_TEXT_H

#include <string>
#include <vector>

#include "planner/search/space/pins.h"

namespace mtplan::tools {

/// Reads pins, PATTERN=VALUE, which fix the splits of operators or the layouts
/// of parameters. Malformed pins become errors and are left out. resolvePins()
/// checks names and values against a model.
std::vector<planner::PinText> parsePins(const std::vector<std::string> &texts,
                                        std::vector<std::string> &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_TEXT_PIN_TEXT_H
