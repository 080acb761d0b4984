//===- training.h - `mtrun FOLDER` ------------------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUN_TRAINING_H
#define MTPLAN_TOOLS_RUN_TRAINING_H

#include <iosfwd>

#include "tools/run/run_flags.h"

namespace mtplan::tools {

/// Trains a plan on threads of this process, on processes that it starts, or as
/// one of several processes.
/// \return 0, or the exit status of the first process that failed
/// \throws BadInput, DataError for bad input; other exceptions for failures of
///   the run. One of several processes ends itself on such a failure.
int trainPlan(RunFlags flags, std::ostream &out, std::ostream &err);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_TRAINING_H
