//===- kernels.cpp - The reference kernels by operator name ---------------===//

#include "runtime/reference/kernels.h"

namespace mtplan::runtime::reference {

const KernelTable &kernels() {
  static const KernelTable kTable = [] {
    KernelTable all;
    addLinear(all);
    addEmbedding(all);
    addPointwise(all);
    addNorm(all);
    addAttention(all);
    addRope(all);
    addLoss(all);
    addMoe(all);
    addPosition(all);
    addMove(all);
    return all;
  }();
  return kTable;
}

} // namespace mtplan::runtime::reference
