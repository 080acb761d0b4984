//===- pointwise.cu - Element by element ----------------------------------===//

#include "runtime/backend/activation.h"
#include "runtime/cuda/device/pointwise.cuh"
#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {

namespace {

template <typename R, int Inputs, int Outputs, typename Body>
class Pointwise final : public Kernel {
public:
  /// \param adds  the result is read, too, as the second operand
  Pointwise(const KernelSpec &theSpec, SharedContext theContext, Body theBody,
            bool adds)
      : context(std::move(theContext)), spec(theSpec), body(theBody),
        addsTo(adds), elements(spec.outputs[0].elements()) {}

  void run(const Invocation &call) override {
    Several<Operand, Inputs> from;
    Several<Result, Outputs> to;
    for (int i = 0; i < Outputs; ++i)
      to[i] = {call.outputs[i], spec.outputs[static_cast<std::size_t>(i)].type};
    for (int i = 0; i < Inputs; ++i)
      from[i] = addsTo && i == 1
                    ? Operand{to[0].data, to[0].type}
                    : Operand{call.inputs[i],
                              spec.inputs[static_cast<std::size_t>(i)].type};
    each<R>(streamOf(context), from, to, elements, body);
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const Body body;
  const bool addsTo;
  const std::int64_t elements;
};

template <int Inputs, int Outputs, typename Body>
MadeKernel makeEach(const KernelSpec &spec, const SharedContext &context,
                    Body body, bool adds = false) {
  if (usesDouble(spec))
    return std::make_unique<Pointwise<double, Inputs, Outputs, Body>>(
        spec, context, body, adds);
  return std::make_unique<Pointwise<float, Inputs, Outputs, Body>>(
      spec, context, body, adds);
}

} // namespace

MadeKernel makePointwise(const KernelSpec &spec, const SharedContext &context) {
  const std::string &name = spec.kernel;
  if (name == "add")
    return makeEach<2, 1>(spec, context, EachSum());
  if (name == "accumulate")
    return makeEach<2, 1>(spec, context, EachSum(), true);
  if (name == "mul")
    return makeEach<2, 1>(spec, context, EachProduct());
  if (name == "cast" || name == "copy" || name == "mask") {
    // Through float not every i32 would come as it went.
    if (spec.inputs[0].type == ElementType::i32)
      return std::make_unique<Pointwise<double, 1, 1, EachSame>>(
          spec, context, EachSame(), false);
    return makeEach<1, 1>(spec, context, EachSame());
  }
  if (name == "scale")
    return makeEach<1, 1>(spec, context,
                          EachScaled{spec.number("factor", 1.0)});
  if (name == "activation")
    return makeEach<1, 1>(spec, context, Activated{activationOf(spec)});
  if (name == "activation_grad")
    return makeEach<2, 1>(spec, context, ActivatedGrad{activationOf(spec)});
  if (name == "swiglu")
    return makeEach<2, 1>(spec, context, Swiglu());
  return makeEach<3, 2>(spec, context, SwigluGrad());
}

} // namespace mtplan::runtime::cuda
