//===- attention_kernel.h - What both kernels of attention share *- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_ATTENTION_KERNEL_H
#define MTPLAN_RUNTIME_CUDA_ATTENTION_KERNEL_H

#include "runtime/cuda/device/attention_tiles.cuh"
#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {

/// Kernels of attention: what does not change from one run to the next.
class AttentionKernel : public Kernel {
public:
  AttentionKernel(const KernelSpec &theSpec, SharedContext theContext,
                  std::size_t tableAt);

protected:
  Heads headsOf(const Invocation &call) const;
  Masks masksOf(const Invocation &call) const;

  const SharedContext context;
  const KernelSpec spec;
  const Heads all;

private:
  const std::size_t table; ///< its place among the operands
  DeviceMemory buckets;
};

/// Calls `use` with how many times 32 features the accumulators must hold.
template <typename Use> void withWidths(std::int64_t width, Use use) {
  if (width <= 2 * kTile)
    use(std::integral_constant<int, 2>());
  else if (width <= 4 * kTile)
    use(std::integral_constant<int, 4>());
  else
    use(std::integral_constant<int, 8>());
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_ATTENTION_KERNEL_H
