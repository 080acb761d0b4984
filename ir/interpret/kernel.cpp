//===- kernel.cpp - The kernels of all families ---------------------------===//

#include "ir/interpret/kernel.h"

namespace mtplan::ir {

const KernelTable &KernelTable::get() {
  static const KernelTable table = [] {
    KernelTable all;
    addLinearKernels(all);
    addEmbeddingKernels(all);
    addPointwiseKernels(all);
    addNormKernels(all);
    addAttentionKernels(all);
    addLossKernels(all);
    addMoeKernels(all);
    addPositionKernels(all);
    return all;
  }();
  return table;
}

} // namespace mtplan::ir
