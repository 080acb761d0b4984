//===- module.cpp - Loads optional code at run time -----------------------===//

#include "runtime/modules/module.h"

#include <dlfcn.h>

namespace mtplan::runtime {

const void *moduleTable(const char *file, const char *entry) {
  // RTLD_NOW reports a missing symbol here. With lazy binding, the missing
  // symbol would terminate the program later.
  void *const module = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  void *const found = module ? dlsym(module, entry) : nullptr;
  if (!found)
    throw ModuleError(dlerror());
  return reinterpret_cast<const void *(*)()>(found)();
}

} // namespace mtplan::runtime
