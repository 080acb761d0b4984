//===- attention_graphs.cpp - The graphs that cuDNN has built -------------===//

#include "runtime/cuda/cudnn/attention_graphs.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "runtime/cuda/device_error.h"

namespace mtplan::runtime::cuda {

namespace {

std::shared_ptr<Graph> build(CudnnGraphs &graphs, const AttentionShape &shape,
                             bool isGrad) {
  auto graph = std::make_shared<Graph>();
  (isGrad ? addAttentionGrad : addAttention)(shape, *graph);
  if (!offer(*graph, graphs.library()).taken)
    return nullptr;
  if (const cudnn_frontend::error_t said = graph->build_plans(); said.is_bad())
    throw DeviceError("cuDNN takes attention of these shapes and cannot build "
                      "it: " +
                      said.err_msg);
  return graph;
}

} // namespace

CudnnGraphs::CudnnGraphs(Make theMake) : make(std::move(theMake)) {}
CudnnGraphs::CudnnGraphs() : CudnnGraphs(build) {}
CudnnGraphs::~CudnnGraphs() {
  if (handle)
    cudnnDestroy(handle);
}

cudnnHandle_t CudnnGraphs::library() {
  if (handle)
    return handle;
  if (const cudnnStatus_t status = cudnnCreate(&handle);
      status != CUDNN_STATUS_SUCCESS) {
    handle = nullptr;
    throw DeviceError(std::string("cuDNN does not start: ") +
                      cudnnGetErrorString(status));
  }
  return handle;
}

CudnnGraphs::Built CudnnGraphs::find(const AttentionShape &shape, bool isGrad) {
  const auto found = std::ranges::find_if(all, [&](const Built &one) {
    return one.shape == shape && one.isGrad == isGrad;
  });
  return found != all.end() ? *found : all.emplace_back(built(shape, isGrad));
}

CudnnGraphs::Built CudnnGraphs::built(const AttentionShape &shape,
                                      bool isGrad) {
  Built one{shape, isGrad, shape, nullptr};
  // All that cuDNN is given is aligned so: the sums of later samples, too.
  constexpr std::int64_t kSumsTogether = 16 / sizeof(float);
  try {
    if (const auto some = mostSamples(shape, [&](const AttentionShape &part) {
          if (part.batch < shape.batch &&
              part.batch * part.heads * part.queries % kSumsTogether != 0)
            return false;
          one.graph = make(*this, part, isGrad);
          return one.graph != nullptr;
        }))
      one.together = *some;
  } catch (const DeviceError &error) {
    warn(error.what());
  }
  return one;
}

void CudnnGraphs::warn(const char *why) {
  if (!std::exchange(hasWarned, true))
    std::fprintf(stderr,
                 "warning: %s: attention is by our own kernels, as with "
                 "MTPLAN_CUDNN=0\n",
                 why);
}

} // namespace mtplan::runtime::cuda
