//===- adamw.cu - Gradient norm, clipping and the update of parameters ----===//

#include <vector>

#include "runtime/cuda/device/adamw.cuh"
#include "runtime/cuda/device/sums.cuh"
#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {
namespace {

/// Holds the TensorList of a kernel (elements.cuh) in device memory.
template <typename Item> class DeviceList {
public:
  DeviceList(const Context &context, const std::vector<Item> &tensors)
      : items(uploaded(context, tensors)) {
    std::vector<Share> all;
    for (std::size_t t = 0; t < tensors.size(); ++t)
      for (std::int64_t p = 0; p < blocksFor(tensors[t].elements, kListPiece);
           ++p)
        all.push_back(
            {static_cast<std::int32_t>(t), static_cast<std::int32_t>(p)});
    blocks = static_cast<std::int64_t>(all.size());
    shares = uploaded(context, all);
  }

  TensorList<Item> get() const {
    return {reinterpret_cast<const Item *>(items.get()),
            reinterpret_cast<const Share *>(shares.get()), blocks};
  }

private:
  DeviceMemory items, shares;
  std::int64_t blocks = 0;
};

bool doesCount(const KernelSpec &spec) {
  return spec.integer("counts", 1) != 0;
}

template <typename R> class SquareSum final : public DeviceKernel {
public:
  SquareSum(const KernelSpec &theSpec, SharedContext theContext)
      : DeviceKernel(theSpec, std::move(theContext)), counts(doesCount(spec)),
        elements(spec.inputs[0].elements()) {
    context->reserve(squareSumScratch(elements));
  }

  void run(const Invocation &call) override {
    if (counts)
      squareSum<R>(stream(), in(call, 0),
                   static_cast<DeviceLongSum *>(call.outputs[0]), elements,
                   scratch());
  }

private:
  const bool counts;
  const std::int64_t elements;
};

template <typename R> class SquareSumOfMany final : public Kernel {
public:
  SquareSumOfMany(const std::vector<Squared> &tensors, void *theSum,
                  SharedContext theContext)
      : context(std::move(theContext)), list(*context, tensors),
        sum(static_cast<DeviceLongSum *>(theSum)) {
    context->reserve(squareSumScratch(list.get()));
  }

  void run(const Invocation & /*call*/) override {
    squareSum<R>(context->stream().get(), list.get(), sum,
                 context->shared<void>());
  }

private:
  const SharedContext context;
  const DeviceList<Squared> list;
  DeviceLongSum *const sum;
};

class GradientFactor final : public DeviceKernel {
public:
  using DeviceKernel::DeviceKernel;

  void run(const Invocation &call) override {
    gradientFactor(stream(), static_cast<const DeviceLongSum *>(call.inputs[0]),
                   spec.inputs[0].elements() / 2, call.step,
                   static_cast<double *>(call.outputs[0]));
  }
};

template <typename R> class Adamw final : public DeviceKernel {
public:
  Adamw(const KernelSpec &theSpec, SharedContext theContext)
      : DeviceKernel(theSpec, std::move(theContext)),
        decays(spec.integer("decay", 0) != 0) {}

  void run(const Invocation &call) override {
    adamw<R>(stream(), in(call, 0), out(call, 0), out(call, 1), out(call, 2),
             out(call, 3), spec.inputs[0].elements(), call.step, decays);
  }

private:
  const bool decays;
};

template <typename R> class AdamwOfMany final : public Kernel {
public:
  AdamwOfMany(const std::vector<Updated> &parameters, SharedContext theContext)
      : context(std::move(theContext)), list(*context, parameters) {}

  void run(const Invocation &call) override {
    adamw<R>(context->stream().get(), list.get(), call.step);
  }

private:
  const SharedContext context;
  const DeviceList<Updated> list;
};

/// Returns whether the operand is f64. The type of the result, which is always
/// f64, has no effect.
bool squaresDouble(const KernelSpec &spec) {
  return spec.inputs[0].type == ElementType::f64;
}

MadeKernel makeSquareSum(const KernelSpec &spec, const SharedContext &context) {
  if (squaresDouble(spec))
    return std::make_unique<SquareSum<double>>(spec, context);
  return std::make_unique<SquareSum<float>>(spec, context);
}

MadeKernel makeSquareSumOfMany(const std::vector<FixedRun> &runs,
                               const SharedContext &context) {
  void *const sum = runs[0].outputs[0];
  const bool isDouble = squaresDouble(runs[0].spec);
  std::vector<Squared> tensors;
  for (const FixedRun &run : runs) {
    if (run.outputs[0] != sum || squaresDouble(run.spec) != isDouble)
      return nullptr;
    if (doesCount(run.spec))
      tensors.push_back({operandOf(run.spec, run.with(nullptr), 0),
                         run.spec.inputs[0].elements()});
  }
  if (isDouble)
    return std::make_unique<SquareSumOfMany<double>>(tensors, sum, context);
  return std::make_unique<SquareSumOfMany<float>>(tensors, sum, context);
}

MadeKernel makeAdamw(const KernelSpec &spec, const SharedContext &context) {
  if (usesDouble(spec))
    return std::make_unique<Adamw<double>>(spec, context);
  return std::make_unique<Adamw<float>>(spec, context);
}

MadeKernel makeAdamwOfMany(const std::vector<FixedRun> &runs,
                           const SharedContext &context) {
  const bool isDouble = usesDouble(runs[0].spec);
  std::vector<Updated> parameters;
  for (const FixedRun &run : runs) {
    if (usesDouble(run.spec) != isDouble)
      return nullptr;
    const Invocation call = run.with(nullptr);
    parameters.push_back(
        {operandOf(run.spec, call, 0), resultOf(run.spec, call, 0),
         resultOf(run.spec, call, 1), resultOf(run.spec, call, 2),
         resultOf(run.spec, call, 3), run.spec.inputs[0].elements(),
         run.spec.integer("decay", 0) != 0});
  }
  if (isDouble)
    return std::make_unique<AdamwOfMany<double>>(parameters, context);
  return std::make_unique<AdamwOfMany<float>>(parameters, context);
}

} // namespace

void addUpdates(Makers &to) {
  to.single["square_sum"] = makeSquareSum;
  to.many["square_sum"] = makeSquareSumOfMany;
  to.single["gradient_factor"] = makeAny<GradientFactor>;
  to.single["adamw"] = makeAdamw;
  to.many["adamw"] = makeAdamwOfMany;
}

} // namespace mtplan::runtime::cuda
