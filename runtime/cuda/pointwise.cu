//===- pointwise.cu - Pointwise kernels and dropout -----------------------===//

#include "runtime/backend/followed.h"
#include "runtime/cuda/device/addend.cuh"
#include "runtime/cuda/device/dropout.cuh"
#include "runtime/cuda/device/pointwise.cuh"
#include "runtime/cuda/families.h"
#include "runtime/plan/kernel_settings.h"

namespace mtplan::runtime::cuda {
namespace {

template <typename R, int Inputs, int Outputs, typename Body>
class Pointwise final : public DeviceKernel {
public:
  Pointwise(const KernelSpec &theSpec, SharedContext theContext, Body theBody)
      : DeviceKernel(theSpec, std::move(theContext)), body(theBody),
        elements(spec.outputs[0].elements()) {}

  void run(const Invocation &call) override {
    Several<Operand, Inputs> from;
    Several<Result, Outputs> to;
    for (int i = 0; i < Outputs; ++i)
      to[i] = out(call, static_cast<std::size_t>(i));
    for (int i = 0; i < Inputs; ++i)
      from[i] = in(call, static_cast<std::size_t>(i));
    each<R>(stream(), from, to, elements, body);
  }

private:
  const Body body;
  const std::int64_t elements;
};

/// Adds the operand to the result, or stores the operand if it is the first
/// term.
template <typename R> class Accumulate final : public DeviceKernel {
public:
  Accumulate(const KernelSpec &theSpec, SharedContext theContext)
      : DeviceKernel(theSpec, std::move(theContext)),
        elements(spec.outputs[0].elements()),
        firstTerm(firstTermOf(spec.settings)) {}

  void run(const Invocation &call) override {
    const Several<Result, 1> sum{{out(call, 0)}};
    const Operand term = in(call, 0);
    if (firstTerm.isOf(call.microBatch, call.copy))
      each<R>(stream(), Several<Operand, 1>{{term}}, sum, elements, EachSame());
    else
      each<R>(stream(), Several<Operand, 2>{{term, standing(sum[0])}}, sum,
              elements, EachSum());
  }

private:
  const std::int64_t elements;
  const FirstTerm firstTerm;
};

/// Applies dropout, optionally with a fused `add`.
template <typename R> class Dropout final : public DeviceKernel {
public:
  Dropout(const KernelSpec &theSpec, SharedContext theContext)
      : DeviceKernel(theSpec, std::move(theContext)),
        rate(spec.number("rate", 0.0)), name(spec.text("mask", "")),
        adds(spec.find(kThen)) {
    try {
      pieceOfWhole(spec.outputs[0]);
    } catch (const std::invalid_argument &fault) {
      refuse(spec, fault.what());
    }
  }

  void run(const Invocation &call) override {
    Addend addend;
    if (adds)
      addend = {in(call, 1), spec.outputs[0].type};
    dropout<R>(stream(), in(call, 0), out(call, adds ? 1 : 0), spec.outputs[0],
               call.microBatch, Masks(call.step, name, call.copy, rate),
               addend);
  }

private:
  const double rate;
  const std::string name;
  const bool adds;
};

template <int Inputs, int Outputs, typename Body>
MadeKernel makeEach(const KernelSpec &spec, const SharedContext &context,
                    Body body) {
  if (usesDouble(spec))
    return std::make_unique<Pointwise<double, Inputs, Outputs, Body>>(
        spec, context, body);
  return std::make_unique<Pointwise<float, Inputs, Outputs, Body>>(
      spec, context, body);
}

MadeKernel makeCopy(const KernelSpec &spec, const SharedContext &context) {
  // A double represents every i32, but a float does not.
  if (spec.inputs[0].type == ElementType::i32)
    return std::make_unique<Pointwise<double, 1, 1, EachSame>>(spec, context,
                                                               EachSame());
  return makeEach<1, 1>(spec, context, EachSame());
}

/// Returns the factory of a pointwise kernel whose Body has no attributes.
template <int Inputs, int Outputs, typename Body> Maker makerOf() {
  return [](const KernelSpec &spec, const SharedContext &context) {
    return makeEach<Inputs, Outputs>(spec, context, Body());
  };
}

} // namespace

MadeKernel makePointwise(const KernelSpec &spec, const SharedContext &context) {
  static const Makers kMakers = [] {
    Makers all;
    addPointwise(all);
    all.single["mask"] = makeCopy; // if `place` is 0; see makeMask
    return all;
  }();
  return kMakers.single.at(spec.kernel)(spec, context);
}

void addPointwise(Makers &to) {
  auto &table = to.single;
  table["accumulate"] = makeTyped<Accumulate>;
  table["add"] = makerOf<2, 1, EachSum>();
  table["cast"] = table["copy"] = makeCopy;
  table["dropout"] = makeTyped<Dropout>;
  to.fused["dropout"] = makeFused<Dropout>;
  table["mul"] = makerOf<2, 1, EachProduct>();
  table["swiglu"] = makerOf<2, 1, Swiglu>();
  table["swiglu_grad"] = makerOf<3, 2, SwigluGrad>();
  table["scale"] = [](const KernelSpec &spec, const SharedContext &context) {
    return makeEach<1, 1>(spec, context,
                          EachScaled{spec.number("factor", 1.0)});
  };
  table["logit_softcap"] = [](const KernelSpec &spec,
                              const SharedContext &context) {
    return makeEach<1, 1>(spec, context, Softcapped{spec.number("cap", 0.0)});
  };
  table["logit_softcap_grad"] = [](const KernelSpec &spec,
                                   const SharedContext &context) {
    return makeEach<2, 1>(spec, context,
                          SoftcappedGrad{spec.number("cap", 0.0)});
  };
  table["activation"] = [](const KernelSpec &spec,
                           const SharedContext &context) {
    return makeEach<1, 1>(spec, context, Activated{activationOf(spec)});
  };
  table["activation_grad"] = [](const KernelSpec &spec,
                                const SharedContext &context) {
    return makeEach<2, 1>(spec, context, ActivatedGrad{activationOf(spec)});
  };
}

void addRow(cudaStream_t stream, Operand from, Operand row, std::int64_t width,
            Result to, std::int64_t elements, bool doubly) {
  if (doubly)
    addRow<double>(stream, from, row, width, to, elements);
  else
    addRow<float>(stream, from, row, width, to, elements);
}

} // namespace mtplan::runtime::cuda
