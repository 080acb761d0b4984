//===- updates.h - Reference kernels that change their results --*- C++ -*-===//
//
// The runtime alone has these kernels: they accumulate gradients, and update
// parameters by numbers of the step.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_REFERENCE_BACKEND_UPDATES_H
#define MTPLAN_RUNTIME_REFERENCE_BACKEND_UPDATES_H

#include <map>
#include <string>
#include <vector>

#include "runtime/backend/kernel.h"

namespace mtplan::runtime::reference {

/// One run. Results hold what was in memory when the kernel starts.
struct UpdateCall {
  const KernelSpec &spec;
  const Invocation &invocation;
  std::vector<std::vector<double>> in, out;
};

using Update = void (*)(UpdateCall &);

/// Returns the kernels by name.
const std::map<std::string, Update> &updates();

} // namespace mtplan::runtime::reference

#endif // MTPLAN_RUNTIME_REFERENCE_BACKEND_UPDATES_H
