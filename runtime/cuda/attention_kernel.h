//===- attention_kernel.h - The base class of attention ---------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_ATTENTION_KERNEL_H
#define MTPLAN_RUNTIME_CUDA_ATTENTION_KERNEL_H

#include "runtime/cuda/device/attention_tiles.cuh"
#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {

/// The base class of attention and its gradient: their shapes, dropout and bias
/// table.
class AttentionKernel : public DeviceKernel {
public:
  /// \param tableAt  the operand index of the bias table, if there is one
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

/// Calls `use` with the smallest supported accumulator width for heads of
/// `width` features, in units of 32 features.
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
