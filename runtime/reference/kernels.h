//===- kernels.h - The reference kernels by operator name -------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_REFERENCE_KERNELS_H
#define MTPLAN_RUNTIME_REFERENCE_KERNELS_H

#include <map>
#include <string>

#include "runtime/reference/call.h"

namespace mtplan::runtime::reference {

using Kernel = void (*)(Call &);
using KernelTable = std::map<std::string, Kernel>;

/// Returns the kernels of all families by the mnemonic of their operator.
const KernelTable &kernels();

/// Each adds the kernels of its family.
void addLinear(KernelTable &table);
void addEmbedding(KernelTable &table);
void addPointwise(KernelTable &table);
void addNorm(KernelTable &table);
void addAttention(KernelTable &table);
void addRope(KernelTable &table);
void addLoss(KernelTable &table);
void addMoe(KernelTable &table);
void addPosition(KernelTable &table);
void addMove(KernelTable &table);

} // namespace mtplan::runtime::reference

#endif // MTPLAN_RUNTIME_REFERENCE_KERNELS_H
