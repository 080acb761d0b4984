//===- dealt.h - The table of a kernel over many tensors --------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEALT_H
#define MTPLAN_RUNTIME_CUDA_DEALT_H

#include <vector>

#include "runtime/cuda/context.h"
#include "runtime/cuda/device/deal.cuh"

namespace mtplan::runtime::cuda {

/// Tensors dealt out to blocks, on the device.
template <typename Item> class Dealt {
public:
  Dealt(const Context &context, const std::vector<Item> &tensors)
      : items(uploaded(context, tensors)) {
    std::vector<Share> all;
    for (std::size_t t = 0; t < tensors.size(); ++t)
      for (std::int64_t p = 0; p < blocksFor(tensors[t].elements, kDealt); ++p)
        all.push_back(
            {static_cast<std::int32_t>(t), static_cast<std::int32_t>(p)});
    blocks = static_cast<std::int64_t>(all.size());
    shares = uploaded(context, all);
  }

  Deal<Item> get() const {
    return {reinterpret_cast<const Item *>(items.get()),
            reinterpret_cast<const Share *>(shares.get()), blocks};
  }

private:
  DeviceMemory items, shares;
  std::int64_t blocks = 0;
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEALT_H
