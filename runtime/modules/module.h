//===- module.h - Loads optional code at run time ---------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_MODULES_MODULE_H
#define MTPLAN_RUNTIME_MODULES_MODULE_H

#include <stdexcept>

namespace mtplan::runtime {

/// Reports a module that cannot be loaded. what() is the message of dlerror(),
/// which names the missing file or symbol.
struct ModuleError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Loads the shared object `file`, calls its C function `entry`, and returns
/// the table of functions that `entry` returns. Code that needs optional
/// libraries (CUDA, MPI) is in such modules, so that a program runs without
/// these libraries. The module stays loaded.
/// \throws ModuleError if `file` cannot be loaded or has no `entry`
const void *moduleTable(const char *file, const char *entry);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_MODULES_MODULE_H
