//===- patience.h - The time after which a silent rank fails a run -*- C++
//-*-===//

#ifndef MTPLAN_TOOLS_RUN_PATIENCE_H
#define MTPLAN_TOOLS_RUN_PATIENCE_H

#include <chrono>

#include "tools/run/run_flags.h"

namespace mtplan::tools {

/// Returns the value of --patience. The default is 8 s, so that a hanging rank
/// is named within ten, or ten predicted steps if these are longer: a rank may
/// compute for most of a step before the next one hears from it.
std::chrono::milliseconds patienceOf(const RunFlags &flags);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_PATIENCE_H
