//===- read_flags.h - From typed flags to a request -------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_DRIVER_READ_FLAGS_H
#define MTPLAN_TOOLS_DRIVER_READ_FLAGS_H

#include "tools/driver/flags.h"

namespace mtplan::tools {

/// Checks every flag and how flags go together. Every fault becomes an error,
/// which begins with the flag, or with the place in a file that gave it.
PlanRequest readFlags(const Flags &flags, std::vector<std::string> &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_READ_FLAGS_H
