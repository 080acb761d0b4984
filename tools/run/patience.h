//===- patience.h - How long a rank may keep others waiting -----*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUN_PATIENCE_H
#define MTPLAN_TOOLS_RUN_PATIENCE_H

#include <chrono>

#include "tools/run/run_flags.h"

namespace mtplan::tools {

/// What was asked for. Else 8 s, so that who stands still is named within ten,
/// or ten times the step that the compiler predicted if that is longer: a rank
/// may compute for most of a step before the next one hears of it.
std::chrono::milliseconds patienceOf(const RunFlags &flags);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_PATIENCE_H
