//===- module.h - Code in a file of its own ---------------------*- C++ -*-===//
//
// What needs libraries that not every machine has is a file beside the program,
// opened where it is needed: without them the rest of the program runs.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_MODULES_MODULE_H
#define MTPLAN_RUNTIME_MODULES_MODULE_H

#include <stdexcept>

namespace mtplan::runtime {

/// Says which file is not there, the module's or one that it needs.
struct ModuleError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What the function `entry` of the module `file` returns: the module's table.
/// It stays loaded.
/// \throws ModuleError
const void *moduleTable(const char *file, const char *entry);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_MODULES_MODULE_H
