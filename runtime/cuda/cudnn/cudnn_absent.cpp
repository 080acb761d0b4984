//===- cudnn_absent.cpp - Stubs for a build without cuDNN -----------------===//

#include "runtime/cuda/cudnn/fused_attention.h"

namespace mtplan::runtime::cuda {

MadeKernel makeFusedAttention(const KernelSpec & /*spec*/,
                              const SharedContext & /*context*/) {
  return nullptr;
}

std::size_t fusedAttentionVersion() { return 0; }

} // namespace mtplan::runtime::cuda
