//===- pointwise.h - Kernels that go element by element ---------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CPU_POINTWISE_H
#define MTPLAN_RUNTIME_CPU_POINTWISE_H

#include <map>
#include <string>

#include "runtime/cpu/families.h"

namespace mtplan::runtime::cpu {

/// Adds all kernels that makePointwise makes.
void addPointwise(std::map<std::string, Maker> &table);

} // namespace mtplan::runtime::cpu

#endif // MTPLAN_RUNTIME_CPU_POINTWISE_H
