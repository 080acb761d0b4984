//===- move.cu - What is copied, cut or cleared ---------------------------===//

#include "runtime/cuda/families.h"
#include "runtime/cuda/rows.cuh"

namespace mtplan::runtime::cuda {

namespace {

/// Of the result, whatever is given.
class Zeros final : public Kernel {
public:
  Zeros(const KernelSpec &spec, SharedContext theContext)
      : context(std::move(theContext)),
        bytes(static_cast<std::size_t>(spec.outputs[0].elements() *
                                       bytesOf(spec.outputs[0].type))) {}

  void run(const Invocation &call) override {
    MTPLAN_CUDA(
        cudaMemsetAsync(call.outputs[0], 0, bytes, context->stream.get()));
  }

private:
  const SharedContext context;
  const std::size_t bytes;
};

/// Row `row` of the piece is one of every `ranks` rows.
struct SliceSource {
  std::int64_t ranks, place;
  __device__ SourceRows operator()(std::int64_t row) const {
    return {row * ranks + place, -1};
  }
};

/// What lies within the cut dimension is one row of the piece.
template <typename R> class Slice final : public Kernel {
public:
  Slice(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)),
        spec(theSpec), source{spec.integer("ranks", 1),
                              spec.integer("place", 0)} {
    const std::vector<std::int64_t> &shape = spec.outputs[0].shape;
    for (std::size_t d = 0; d < shape.size(); ++d)
      (static_cast<std::int64_t>(d) < spec.integer("dim", 0) ? rows : width) *=
          shape[d];
  }

  void run(const Invocation &call) override {
    gather<R>(*context, operandOf(spec, call, 0), {nullptr, ElementType::f32},
              resultOf(spec, call, 0), rows, width, source);
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const SliceSource source;
  std::int64_t rows = 1, width = 1;
};

} // namespace

MadeKernel makeMove(const KernelSpec &spec, const SharedContext &context) {
  if (spec.kernel == "slice") {
    // Through float no i32 would come as it went.
    if (spec.inputs[0].type == ElementType::i32)
      return std::make_unique<Slice<double>>(spec, context);
    return makeOf<Slice>(spec, context);
  }
  if (spec.kernel == "mask" && spec.integer("place", 0) == 0)
    return makePointwise(spec, context);
  return std::make_unique<Zeros>(spec, context);
}

} // namespace mtplan::runtime::cuda
