//===- fixed_runs.h - Runs that are always the same -------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_BACKEND_FIXED_RUNS_H
#define MTPLAN_RUNTIME_BACKEND_FIXED_RUNS_H

#include "runtime/backend/made_kernel.h"

namespace mtplan::runtime {

/// As Backend::prepareTogether has them, or else one after another.
/// \throws std::runtime_error as Backend::prepare does
MadeKernel prepareAll(Backend &backend, const std::vector<FixedRun> &runs);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_FIXED_RUNS_H
