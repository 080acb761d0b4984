//===- added_row.cu - A vector beside every row ---------------------------===//

#include "runtime/cuda/added_row.h"
#include "runtime/cuda/device/added_row.cuh"

namespace mtplan::runtime::cuda {

void addRow(cudaStream_t stream, Operand from, Operand row, std::int64_t width,
            Result to, std::int64_t elements, bool doubly) {
  constexpr unsigned kThreads = 256;
  const Grid grid{blocksFor(elements, std::int64_t{kThreads} * kPack), 1,
                  kThreads};
  if (doubly)
    launch(stream, grid, addRowToEach<double>, from, row, width, to, elements);
  else
    launch(stream, grid, addRowToEach<float>, from, row, width, to, elements);
}

} // namespace mtplan::runtime::cuda
