//===- updates.cuh - Updates of many parameters by one launch ---*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_STANDALONE_UPDATES_CUH
#define MTPLAN_RUNTIME_CUDA_STANDALONE_UPDATES_CUH

#include <cstdint>
#include <iterator> // std::size, for the callers
#include <string>
#include <vector>

#include "runtime/cuda/device/adamw.cuh"
#include "runtime/cuda/standalone/rank.cuh"

namespace mtplan::runtime::cuda {

/// Updates the parameters listed in `table` by AdamW, in `layers` layers from
/// now.layer on, with one launch.
/// \tparam R  type in which AdamW computes
/// \param name  identifies the list in device memory
template <typename R>
void updateAll(const Run &now, const std::string &name,
               const UpdatedBuffers *table, std::int64_t rows, int layers = 1) {
  const auto list = [&](std::vector<Updated> &all) {
    for (int i = 0; i < layers; ++i) {
      const Run layer{now.rank, now.layer + i, now.microBatch};
      for (const UpdatedBuffers *row = table; row < table + rows; ++row)
        all.push_back({layer[row->gradient], layer[row->weight],
                       layer[row->master], layer[row->firstMoment],
                       layer[row->secondMoment], row->elements, row->decays});
    }
  };
  adamw<R>(now.stream(), tensorList<Updated>(now, name, list),
           now.rank.numbers);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_STANDALONE_UPDATES_CUH
