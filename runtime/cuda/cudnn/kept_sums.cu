//===- kept_sums.cu - What forward keeps of rows, as cuDNN has it ---------===//

#include "runtime/cuda/cudnn/kept_sums.h"
#include "runtime/cuda/device/move.cuh"

namespace mtplan::runtime::cuda {

void turn(cudaStream_t stream, const float *from, float *to, std::int64_t batch,
          std::int64_t rows, std::int64_t columns) {
  Strides turned;
  turned.dims = 3;
  const std::int64_t sizes[] = {batch, columns, rows};
  const std::int64_t steps[] = {rows * columns, 1, columns};
  std::copy(sizes, sizes + 3, turned.sizes);
  std::copy(steps, steps + 3, turned.steps);
  turned.start = 0;
  turned.length = 1;
  take<float>(stream, {from, ElementType::f32}, {to, ElementType::f32},
              batch * rows * columns, turned);
}

} // namespace mtplan::runtime::cuda
