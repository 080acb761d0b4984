//===- updates.h - Reference kernels that change their results --*- C++ -*-===//
//
// These kernels exist only in the runtime, not in the IR. They accumulate
// gradients, and update parameters with the hyperparameters of the step.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_REFERENCE_BACKEND_UPDATES_H
#define MTPLAN_RUNTIME_REFERENCE_BACKEND_UPDATES_H

#include <map>
#include <string>
#include <vector>

#include "runtime/backend/kernel.h"

namespace mtplan::runtime::reference {

/// The arguments of one run. Results have their previous contents when the
/// kernel starts.
struct UpdateCall {
  const KernelSpec &spec;
  const Invocation &invocation;
  std::vector<std::vector<double>> in, out;
};

using Update = void (*)(UpdateCall &);

/// Returns all update kernels by name.
const std::map<std::string, Update> &updates();

} // namespace mtplan::runtime::reference

#endif // MTPLAN_RUNTIME_REFERENCE_BACKEND_UPDATES_H
