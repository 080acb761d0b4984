//===- rope.cu - Rotary positions -----------------------------------------===//

#include "runtime/cuda/device/rope.cuh"
#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {

namespace {

template <typename R> class Rope final : public Kernel {
public:
  Rope(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec) {
    const TensorView &view = spec.inputs[0];
    all.length = view.shape[1];
    all.offset = pieceOf(view, 1).offset;
    all.width = view.shape[2];
    all.headWidth = spec.integer("head_dim", 1);
    all.pairs = spec.integer("rotary_dim", 0) / 2;
    all.interleaved = spec.integer("interleaved", 0) != 0;
    all.turn = spec.integer("inverse", 0) != 0 ? -1.0 : 1.0;
    frequencies = uploaded(
        *context, ropeFrequencies(spec.number("theta", 1e4), all.pairs));
  }

  void run(const Invocation &call) override {
    rope<R>(streamOf(context), operandOf(spec, call, 0),
            resultOf(spec, call, 0),
            reinterpret_cast<const double *>(frequencies.get()),
            spec.inputs[0].shape[0], all);
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  Rotation all{};
  DeviceMemory frequencies;
};

} // namespace

MadeKernel makeRope(const KernelSpec &spec, const SharedContext &context) {
  return makeOf<Rope>(spec, context);
}

} // namespace mtplan::runtime::cuda
