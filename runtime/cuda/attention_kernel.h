//===- attention_kernel.h - The base of attention's kernels -----*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_ATTENTION_KERNEL_H
#define MTPLAN_RUNTIME_CUDA_ATTENTION_KERNEL_H

#include "runtime/cuda/device/attention_tiles.cuh"
#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {

/// Keeps the shapes of an attention, and its table of biases.
class AttentionKernel : public DeviceKernel {
public:
  /// \param tableAt  index of the table among the operands
  AttentionKernel(const KernelSpec &theSpec, SharedContext theContext,
                  std::size_t tableAt);

protected:
  Heads headsOf(const Invocation &call) const;
  Masks masksOf(const Invocation &call) const;

  const Heads all;

private:
  const std::size_t table;
  DeviceMemory buckets;
};

/// Calls `use` with the width of the accumulators, in units of 32 features.
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
