//===- move.cu - Copies, slices, transpositions and zeros -----------------===//

#include <algorithm>

#include "runtime/backend/strided_source.h"
#include "runtime/cuda/device/move.cuh"
#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {
namespace {

/// Sets the result to zero; operands are ignored.
class Zeros final : public DeviceKernel {
public:
  Zeros(const KernelSpec &theSpec, SharedContext theContext)
      : DeviceKernel(theSpec, std::move(theContext)),
        bytes(static_cast<std::size_t>(spec.outputs[0].elements() *
                                       bytesOf(spec.outputs[0].type))) {}

  void run(const Invocation &call) override {
    MTPLAN_CUDA(cudaMemsetAsync(call.outputs[0], 0, bytes, stream()));
  }

private:
  const std::size_t bytes;
};

template <typename R> class Take final : public DeviceKernel {
public:
  Take(const KernelSpec &theSpec, SharedContext theContext)
      : DeviceKernel(theSpec, std::move(theContext)) {
    const StridedSource all(spec);
    if (all.sizes.size() > kMostDims)
      refuse(spec, "has more than " + std::to_string(kMostDims) +
                       " dimensions that are sliced");
    source.dims = static_cast<int>(all.sizes.size());
    std::copy(all.sizes.begin(), all.sizes.end(), source.sizes);
    std::copy(all.steps.begin(), all.steps.end(), source.steps);
    source.start = all.start;
    source.length = all.length;
    runs = all.runs();
  }

  void run(const Invocation &call) override {
    take<R>(stream(), in(call, 0), out(call, 0), runs, source);
  }

private:
  Strides source;
  std::int64_t runs;
};

MadeKernel makeTake(const KernelSpec &spec, const SharedContext &context) {
  // A double represents every i32, but a float does not.
  if (spec.inputs[0].type == ElementType::i32)
    return std::make_unique<Take<double>>(spec, context);
  return makeOf<Take>(spec, context);
}

/// Makes a kernel that copies its operand on the first rank of an axis (where
/// `place` is 0), and writes zeros on the other ranks.
MadeKernel makeMask(const KernelSpec &spec, const SharedContext &context) {
  if (spec.integer("place", 0) == 0)
    return makePointwise(spec, context);
  return makeAny<Zeros>(spec, context);
}

} // namespace

void addMoves(Makers &to) {
  for (const char *name : {"piece", "slice", "transpose"})
    to.single[name] = makeTake;
  to.single["mask"] = makeMask;
  to.single["zeros"] = makeAny<Zeros>;
}

void transposeRows(cudaStream_t stream, const float *from, float *to,
                   std::int64_t batch, std::int64_t rows,
                   std::int64_t columns) {
  const Strides turned{
      3, {batch, columns, rows}, {rows * columns, 1, columns}, 0, 1};
  take<float>(stream, {from, ElementType::f32}, {to, ElementType::f32},
              batch * rows * columns, turned);
}

} // namespace mtplan::runtime::cuda
