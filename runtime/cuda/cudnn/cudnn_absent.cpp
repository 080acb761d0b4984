//===- cudnn_absent.cpp - Built without cuDNN -----------------------------===//

#include "runtime/cuda/cudnn/fused_attention.h"

namespace mtplan::runtime::cuda {

MadeKernel makeFusedAttention(const KernelSpec & /*spec*/,
                              const SharedContext & /*context*/) {
  return nullptr;
}

} // namespace mtplan::runtime::cuda
