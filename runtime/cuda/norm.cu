//===- norm.cu - Layer and RMS norms --------------------------------------===//

#include "runtime/backend/followed.h"
#include "runtime/cuda/device/norm.cuh"
#include "runtime/cuda/device/norm_grad.cuh"
#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {
namespace {

constexpr double kEpsilon = 1e-5; // the default in ir/norm_ops.td

template <typename R> class Norm final : public DeviceKernel {
public:
  Norm(const KernelSpec &theSpec, SharedContext theContext)
      : DeviceKernel(theSpec, std::move(theContext)),
        width(spec.inputs[1].shape[0]),
        rows(spec.inputs[0].elements() / width) {}

  void run(const Invocation &call) override {
    norm<R>(stream(), in(call, 0), in(call, 1),
            spec.inputs.size() > 2 ? in(call, 2) : kNone, out(call, 0), rows,
            width, spec.number("epsilon", kEpsilon));
  }

private:
  const std::int64_t width, rows;
};

/// Computes the gradient of a norm, optionally with a fused `add`.
template <typename R> class NormGrad final : public DeviceKernel {
public:
  NormGrad(const KernelSpec &theSpec, SharedContext theContext)
      : DeviceKernel(theSpec, std::move(theContext)), adds(spec.find(kThen)),
        centred(spec.kernel == "layer_norm_grad") {
    const std::vector<std::int64_t> &shape = spec.inputs[0].shape;
    sizes.columns = spec.inputs[1].shape[0];
    sizes.samples = shape.size() < 2 ? 1 : shape[0];
    sizes.rows = spec.inputs[0].elements() / sizes.samples / sizes.columns;
    if (sizes.columns > kWidestNormGrad)
      refuse(spec, "has rows of " + std::to_string(sizes.columns) +
                       " columns; GPU kernels support at most " +
                       std::to_string(kWidestNormGrad));
    context->reserve(normGradScratch<R>(sizes, centred));
  }

  void run(const Invocation &call) override {
    normGrad<R>(stream(), in(call, 0), in(call, 1), in(call, 2),
                out(call, adds ? spec.outputs.size() - 1 : 0), out(call, 1),
                centred ? out(call, 2) : kNowhere, sizes,
                spec.number("epsilon", kEpsilon), scratch(),
                adds ? Addend{in(call, 3), spec.outputs[0].type} : Addend());
  }

private:
  const bool adds, centred;
  ColumnSizes sizes;
};

} // namespace

void addNorms(Makers &to) {
  for (const std::string name : {"layer_norm", "rms_norm"}) {
    to.single[name] = makeTyped<Norm>;
    to.single[name + "_grad"] = makeTyped<NormGrad>;
    to.fused[name + "_grad"] = makeFused<NormGrad>;
  }
}

} // namespace mtplan::runtime::cuda
