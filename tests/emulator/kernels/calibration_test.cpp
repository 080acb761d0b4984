//===- calibration_test.cpp - What a GPU is seen to do at once ------------===//

#include <set>

#include <gtest/gtest.h>

#include "runtime/calibration/kernel_runs.h"
#include "runtime/cuda/cuda_backend.h"

namespace mtplan::runtime {
namespace {

// cuBLASLt has no other functions in its epilogues, nor this one in 32 bits.
TEST(CudaCalibration, MeasuresWhatIsOneKernel) {
  const CalibrationShapes small{
      .samples = 2, .sequence = 64, .hidden = 128, .words = 512, .square = 256};
  for (const ElementType type : {ElementType::f32, ElementType::bf16}) {
    std::set<std::string> joined;
    const std::unique_ptr<Backend> backend = makeCudaBackend();
    for (const KernelRun &one : kernelRunsOf(small, type))
      if (one.run.as == MeasuredAs::followed &&
          !backend->prepare(one.spec)->isInTurn())
        joined.insert(one.run.after + '+' + one.run.kernel + ' ' +
                      one.run.variant);
    std::set<std::string> expected{
        "+add ", "dropout+add ", "layer_norm_grad+add ", "rms_norm_grad+add "};
    if (bytesOf(type) == 2)
      expected.insert({"+activation gelu_tanh", "+activation_grad gelu_tanh"});
    EXPECT_EQ(joined, expected);
  }
}

} // namespace
} // namespace mtplan::runtime
