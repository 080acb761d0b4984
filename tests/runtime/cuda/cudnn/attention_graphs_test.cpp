//===- attention_graphs_test.cpp - Attention without cuDNN ----------------===//

#include <cstdlib>

#include <gtest/gtest.h>

#include "runtime/cuda/cudnn/attention_graph.h"
#include "runtime/cuda/device_error.h"

namespace mtplan::runtime::cuda {
namespace {

using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

constexpr AttentionShape kShape{8,  1024, 24,   1024,  1024,
                                24, 64,   true, 0.125, ElementType::bf16};

TEST(AttentionGraphs, OwnKernelsReplaceFailedGraphs) {
  int asked = 0;
  CudnnGraphs graphs([&](CudnnGraphs &, const AttentionShape &, bool) {
    ++asked;
    throw DeviceError("cuDNN cannot build it");
    return std::shared_ptr<Graph>();
  });
  CaptureStderr();
  for (int layer = 0; layer < 3; ++layer)
    for (bool isGrad : {false, true})
      EXPECT_EQ(graphs.find(kShape, isGrad).graph, nullptr);
  EXPECT_EQ(GetCapturedStderr(),
            "warning: cuDNN cannot build it: attention uses mtplan's own "
            "kernels, as with MTPLAN_CUDNN=0\n");
  EXPECT_EQ(asked, 2);
}

// A missing graph is no fault and prints no warning.
TEST(AttentionGraphs, OwnKernelsReplaceMissingGraphs) {
  int asked = 0;
  CudnnGraphs graphs([&](CudnnGraphs &, const AttentionShape &, bool) {
    ++asked;
    return std::shared_ptr<Graph>();
  });
  CaptureStderr();
  EXPECT_EQ(graphs.find(kShape, false).graph, nullptr);
  EXPECT_EQ(graphs.find(kShape, false).graph, nullptr);
  EXPECT_EQ(GetCapturedStderr(), "");
  EXPECT_EQ(asked, 4); // graphs of 8, 4, 2 and 1 samples
}

TEST(AttentionGraphs, GraphsHaveAsManySamplesAsCudnnSupports) {
  CudnnGraphs graphs([&](CudnnGraphs &, const AttentionShape &shape, bool) {
    return shape.batch <= 2 ? std::make_shared<Graph>() : nullptr;
  });
  const CudnnGraphs::Built built = graphs.find(kShape, true);
  EXPECT_NE(built.graph, nullptr);
  EXPECT_EQ(built.together.batch, 2);
  EXPECT_EQ(graphs.find(kShape, true).graph, built.graph);
}

// The code runs in a process that sees no device, so that machines with a GPU
// test it, too. GPU acceptance (docs/gpu-acceptance.md) would count a skipped
// test as failed.
TEST(AttentionGraphs, OwnKernelsRunIfCudnnDoesNotStart) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [] {
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    std::exit(CudnnGraphs().find(kShape, false).graph ? 1 : 0);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0),
              "warning: cuDNN does not start: ");
}

} // namespace
} // namespace mtplan::runtime::cuda
