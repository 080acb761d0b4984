//===- module.h - Loads optional code at run time ---------------*- C++ -*-===//
//
// Code that depends on optional libraries (CUDA, MPI) is in a shared object
// beside the program and is loaded when it is needed. The program also runs on
// machines without these libraries.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_MODULES_MODULE_H
#define MTPLAN_RUNTIME_MODULES_MODULE_H

#include <stdexcept>

namespace mtplan::runtime {

/// Reports a module that cannot be loaded. what() names the missing file: the
/// module, or a library that it depends on.
struct ModuleError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Loads the shared object `file`, calls its C function `entry`, and returns
/// the table of functions that `entry` returns. The module stays loaded.
/// \throws ModuleError if `file` cannot be loaded or has no `entry`
const void *moduleTable(const char *file, const char *entry);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_MODULES_MODULE_H
