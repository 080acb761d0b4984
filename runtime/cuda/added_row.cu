//===- added_row.cu - A vector beside every row ---------------------------===//

#include "runtime/cuda/added_row.h"
#include "runtime/cuda/device/added_row.cuh"

namespace mtplan::runtime::cuda {

void addRow(cudaStream_t stream, Operand from, Operand row, std::int64_t width,
            Result to, std::int64_t elements, bool doubly) {
  if (doubly)
    addRow<double>(stream, from, row, width, to, elements);
  else
    addRow<float>(stream, from, row, width, to, elements);
}

} // namespace mtplan::runtime::cuda
