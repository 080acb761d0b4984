//===- training.h - `mtrun FOLDER` ------------------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUN_TRAINING_H
#define MTPLAN_TOOLS_RUN_TRAINING_H

#include <iosfwd>

#include "tools/run/run_flags.h"

namespace mtplan::tools {

/// Trains a plan on threads of this process or processes that it starts, or as
/// one of several processes.
/// \return 0, or what the first process that failed ended with
/// \throws BadInput, DataError for what was typed or read; others for what went
///         wrong on the way. One of several processes ends itself then.
int trainPlan(RunFlags flags, std::ostream &out, std::ostream &err);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_TRAINING_H
