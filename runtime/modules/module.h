//===- module.h - Loads optional code at run time ---------------*- C++ -*-===//
//
// Code that needs libraries which not every machine has lies in a file beside
// the program and is loaded when it is needed. Without these libraries the rest
// of the program runs.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_MODULES_MODULE_H
#define MTPLAN_RUNTIME_MODULES_MODULE_H

#include <stdexcept>

namespace mtplan::runtime {

/// Names the missing file: the module or a library that it needs.
struct ModuleError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Returns the module's table, which the function `entry` of the module `file`
/// returns. The module stays loaded.
/// \throws ModuleError
const void *moduleTable(const char *file, const char *entry);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_MODULES_MODULE_H
