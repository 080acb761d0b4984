//===- pointwise.cu - Element by element ----------------------------------===//

#include "runtime/backend/activation.h"
#include "runtime/cuda/device/pointwise.cuh"
#include "runtime/cuda/pointwise.h"
#include "runtime/plan/first_term.h"

namespace mtplan::runtime::cuda {

namespace {

template <typename R, int Inputs, int Outputs, typename Body>
class Pointwise final : public Kernel {
public:
  Pointwise(const KernelSpec &theSpec, SharedContext theContext, Body theBody)
      : context(std::move(theContext)), spec(theSpec), body(theBody),
        elements(spec.outputs[0].elements()) {}

  void run(const Invocation &call) override {
    Several<Operand, Inputs> from;
    Several<Result, Outputs> to;
    for (int i = 0; i < Outputs; ++i)
      to[i] = {call.outputs[i], spec.outputs[static_cast<std::size_t>(i)].type};
    for (int i = 0; i < Inputs; ++i)
      from[i] = {call.inputs[i], spec.inputs[static_cast<std::size_t>(i)].type};
    each<R>(streamOf(context), from, to, elements, body);
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const Body body;
  const std::int64_t elements;
};

/// To what is there, but for the first term.
template <typename R> class Accumulate final : public Kernel {
public:
  Accumulate(const KernelSpec &spec, SharedContext theContext)
      : context(std::move(theContext)), from(spec.inputs[0].type),
        to(spec.outputs[0].type), elements(spec.outputs[0].elements()),
        firstTerm(firstTermOf(spec.settings)) {}

  void run(const Invocation &call) override {
    const Several<Result, 1> sum{{{call.outputs[0], to}}};
    const Operand term{call.inputs[0], from};
    if (firstTerm.isOf(call.microBatch, call.copy))
      each<R>(streamOf(context), Several<Operand, 1>{{term}}, sum, elements,
              EachSame());
    else
      each<R>(streamOf(context),
              Several<Operand, 2>{{term, {call.outputs[0], to}}}, sum, elements,
              EachSum());
  }

private:
  const SharedContext context;
  const ElementType from, to;
  const std::int64_t elements;
  const FirstTerm firstTerm;
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

MadeKernel makeAccumulate(const KernelSpec &spec,
                          const SharedContext &context) {
  if (usesDouble(spec))
    return std::make_unique<Accumulate<double>>(spec, context);
  return std::make_unique<Accumulate<float>>(spec, context);
}

MadeKernel makeCopy(const KernelSpec &spec, const SharedContext &context) {
  // A float does not hold every i32, and a double does.
  if (spec.inputs[0].type == ElementType::i32)
    return std::make_unique<Pointwise<double, 1, 1, EachSame>>(spec, context,
                                                               EachSame());
  return makeEach<1, 1>(spec, context, EachSame());
}

/// Returns the maker of a kernel whose body has no settings.
template <int Inputs, int Outputs, typename Body> Maker makerOf() {
  return [](const KernelSpec &spec, const SharedContext &context) {
    return makeEach<Inputs, Outputs>(spec, context, Body());
  };
}

} // namespace

MadeKernel makePointwise(const KernelSpec &spec, const SharedContext &context) {
  static const std::map<std::string, Maker> kMakers = [] {
    std::map<std::string, Maker> table;
    addPointwise(table);
    table["mask"] = makeCopy; // at the rank that keeps its tensor
    return table;
  }();
  return kMakers.at(spec.kernel)(spec, context);
}

void addPointwise(std::map<std::string, Maker> &table) {
  table["accumulate"] = makeAccumulate;
  table["add"] = makerOf<2, 1, EachSum>();
  table["cast"] = table["copy"] = makeCopy;
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

} // namespace mtplan::runtime::cuda
