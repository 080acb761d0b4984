//===- experts.cu - Mixture of experts: gates, balance, dispatch ----------===//

#include "runtime/cuda/device/balance.cuh"
#include "runtime/cuda/device/experts.cuh"
#include "runtime/cuda/device/gate.cuh"
#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {
namespace {

template <typename R> class Gate final : public DeviceKernel {
public:
  Gate(const KernelSpec &theSpec, SharedContext theContext)
      : DeviceKernel(theSpec, std::move(theContext)),
        experts(spec.inputs[0].shape[2]),
        tokens(spec.inputs[0].elements() / experts),
        topK(spec.integer("top_k", 1)),
        normalise(spec.integer("normalise", 0) != 0) {}

  void run(const Invocation &call) override {
    if (spec.kernel == "moe_gate")
      moeGate<R>(stream(), in(call, 0), out(call, 0), tokens, experts, topK,
                 normalise);
    else
      moeGateGrad<R>(stream(), in(call, 0), in(call, 1), out(call, 0), tokens,
                     experts, topK, normalise);
  }

private:
  const std::int64_t experts, tokens, topK;
  const bool normalise;
};

template <typename R> class Slots final : public DeviceKernel {
public:
  Slots(const KernelSpec &theSpec, SharedContext theContext)
      : DeviceKernel(theSpec, std::move(theContext)),
        topK(spec.integer("top_k", 1)) {
    const std::vector<std::int64_t> &shape = spec.inputs[0].shape;
    context->reserve(moeSlotsScratch(shape[0] * shape[1], shape[2]));
  }

  void run(const Invocation &call) override {
    const std::vector<std::int64_t> &shape = spec.inputs[0].shape;
    moeSlots<R>(stream(), in(call, 0),
                static_cast<std::int32_t *>(call.outputs[0]), shape[0],
                shape[1], shape[2], topK, scratch());
  }

private:
  const std::int64_t topK;
};

template <typename R> class BalanceLoss final : public DeviceKernel {
public:
  BalanceLoss(const KernelSpec &theSpec, SharedContext theContext)
      : DeviceKernel(theSpec, std::move(theContext)),
        all{spec.inputs[0].shape[1], spec.inputs[0].shape[2],
            spec.integer("top_k", 1), spec.number("coefficient", 0.0)},
        samples(spec.inputs[0].shape[0]) {
    context->reserve(balanceScratch<R>(samples, all.experts));
  }

  void run(const Invocation &call) override {
    (spec.kernel == "balance_loss"
         ? balanceLoss<R>
         : balanceLossGrad<R>)(stream(), in(call, 0), in(call, 1), out(call, 0),
                               samples, all, scratch());
  }

private:
  const Balance<R> all;
  const std::int64_t samples;
};

/// Implements dispatch, combine and their gradients. The kernel's name
/// determines which operands are the slots and the experts' buffers.
template <typename R> class Experts final : public DeviceKernel {
public:
  Experts(const KernelSpec &theSpec, SharedContext theContext)
      : DeviceKernel(theSpec, std::move(theContext)), slotsAt(slotsPlace()),
        places(
            placesOf(spec.inputs[slotsAt], spec.kernel == "moe_dispatch"
                                               ? spec.outputs[0]
                                               : spec.inputs[placesPlace()])) {
    context->reserve(placesScratch(places));
  }

  void run(const Invocation &call) override {
    const std::int32_t *slots = integers(call, slotsAt);
    if (spec.kernel == "moe_dispatch")
      moeDispatch<R>(stream(), in(call, 0), slots, out(call, 0), places,
                     scratch());
    else if (spec.kernel == "moe_dispatch_grad")
      moeDispatchGrad<R>(stream(), slots, in(call, 1), out(call, 0), places);
    else if (spec.kernel == "moe_combine")
      moeCombine<R>(stream(), in(call, 0), in(call, 1), slots, out(call, 0),
                    places);
    else
      moeCombineGrad<R>(stream(), in(call, 0), in(call, 1), slots, in(call, 3),
                        out(call, 0), out(call, 1), places, scratch());
  }

private:
  static Places placesOf(const TensorView &slots, const TensorView &places) {
    return {slots.shape[0], slots.shape[1], slots.shape[2], places.shape[2],
            places.shape[3]};
  }
  std::size_t slotsPlace() const {
    return spec.kernel == "moe_dispatch"        ? 1
           : spec.kernel == "moe_dispatch_grad" ? 0
                                                : 2;
  }
  std::size_t placesPlace() const {
    return spec.kernel == "moe_dispatch_grad" ? 1 : 0;
  }

  const std::size_t slotsAt;
  const Places places;
};

} // namespace

void addExperts(Makers &to) {
  to.single["balance_loss"] = to.single["balance_loss_grad"] =
      makeTyped<BalanceLoss>;
  to.single["moe_gate"] = to.single["moe_gate_grad"] = makeTyped<Gate>;
  to.single["moe_slots"] = makeTyped<Slots>;
  for (const char *name :
       {"moe_combine", "moe_combine_grad", "moe_dispatch", "moe_dispatch_grad"})
    to.single[name] = makeTyped<Experts>;
}

} // namespace mtplan::runtime::cuda
