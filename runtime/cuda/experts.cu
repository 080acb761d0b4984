//===- experts.cu - Tokens to the experts' places and back ----------------===//

#include "runtime/cuda/families.h"
#include "runtime/cuda/rows.cuh"

namespace mtplan::runtime::cuda {

namespace {

constexpr unsigned kThreads = 256;

/// Slots [b, s, e] say which of an expert's places, [e, b, c, h], a token has.
struct Places {
  std::int64_t samples, positions, experts, count, width;

  Places(const TensorView &slots, const TensorView &places)
      : samples(slots.shape[0]), positions(slots.shape[1]),
        experts(slots.shape[2]), count(places.shape[2]),
        width(places.shape[3]) {}

  std::int64_t tokens() const { return samples * positions; }
  std::int64_t rows() const { return experts * samples * count; }

  /// Row of a place in [e, b, c], or -1 for a token that got none.
  __device__ std::int64_t rowOf(std::int64_t token, std::int64_t expert,
                                std::int32_t slot) const {
    if (slot < 0 || slot >= count)
      return -1;
    return (expert * samples + token / positions) * count + slot;
  }
};

/// A thread for each slot tells its place the slot; places without are left.
__global__ void tellPlaces(const std::int32_t *slots, Places places,
                           std::int64_t elements, std::int64_t *slotOf) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= elements)
    return;
  const std::int64_t row =
      places.rowOf(i / places.experts, i % places.experts, slots[i]);
  if (row >= 0)
    slotOf[row] = i;
}

struct PlaceSource {
  const std::int64_t *slotOf;
  std::int64_t experts;
  __device__ SourceRows operator()(std::int64_t row) const {
    return {slotOf[row] < 0 ? -1 : slotOf[row] / experts, -1};
  }
};

/// A thread for each pack of each token: its places' rows, by expert.
/// \param gates  by slot, or without data: all 1
template <typename R>
__global__ void sumPlaces(Operand from, Operand gates,
                          const std::int32_t *slots, Places places, Result to) {
  const std::int64_t packs = (places.width + kPack - 1) / kPack;
  const std::int64_t pack = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (pack >= places.samples * places.positions * packs)
    return;
  const std::int64_t token = pack / packs, h = pack % packs * kPack;
  const int count = packAt(h, places.width);
  R sum[kPack] = {}, x[kPack];
  for (std::int64_t e = 0; e < places.experts; ++e) {
    const std::int64_t slot = token * places.experts + e;
    const std::int64_t row = places.rowOf(token, e, slots[slot]);
    if (row < 0)
      continue;
    const R gate = gates.data ? loadOne<R>(gates, slot) : R(1);
    load(from, row * places.width + h, count, x);
    for (int i = 0; i < kPack; ++i)
      sum[i] += gate * x[i];
  }
  store(to, token * places.width + h, count, sum);
}

/// A thread for each pack of each place: its token's gradient by its gate.
template <typename R>
__global__ void placesGrad(Operand above, Operand gates,
                           const std::int64_t *slotOf, Places places,
                           std::int64_t rows, Result to) {
  const std::int64_t packs = (places.width + kPack - 1) / kPack;
  const std::int64_t pack = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (pack >= rows * packs)
    return;
  const std::int64_t row = pack / packs, h = pack % packs * kPack;
  const std::int64_t slot = slotOf[row];
  const int count = packAt(h, places.width);
  R x[kPack] = {};
  if (slot >= 0) {
    const R gate = loadOne<R>(gates, slot);
    load(above, slot / places.experts * places.width + h, count, x);
    for (int i = 0; i < kPack; ++i)
      x[i] *= gate;
  }
  store(to, row * places.width + h, count, x);
}

/// A warp for each slot: what its place holds, times its token's gradient.
template <typename R>
__global__ void gatesGrad(Operand from, const std::int32_t *slots,
                          Operand above, Places places, std::int64_t elements,
                          Result to) {
  const std::int64_t slot =
      std::int64_t{blockIdx.x} * (kThreads / kWarp) + threadIdx.x / kWarp;
  if (slot >= elements)
    return;
  const std::int64_t token = slot / places.experts;
  const std::int64_t row =
      places.rowOf(token, slot % places.experts, slots[slot]);
  R sum = R(0), x[kPack], d[kPack];
  if (row >= 0)
    for (std::int64_t h = threadIdx.x % kWarp * kPack; h < places.width;
         h += kWarp * kPack) {
      const int count = packAt(h, places.width);
      load(from, row * places.width + h, count, x);
      load(above, token * places.width + h, count, d);
      for (int i = 0; i < kPack; ++i)
        sum += x[i] * d[i];
    }
#pragma unroll
  for (int apart = kWarp / 2; apart > 0; apart /= 2)
    sum += __shfl_xor_sync(0xffffffffU, sum, apart);
  if (threadIdx.x % kWarp == 0)
    storeOne(to, slot, sum);
}

/// What all four know: where slots and places are among the operands.
template <typename R> class Experts final : public Kernel {
public:
  Experts(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec), slotsAt(slotsPlace()),
        places(spec.inputs[slotsAt], spec.kernel == "moe_dispatch"
                                         ? spec.outputs[0]
                                         : spec.inputs[placesPlace()]),
        elements(spec.inputs[slotsAt].elements()) {
    if (asksPlaces())
      context->reserve(placesBytes());
  }

  void run(const Invocation &call) override {
    const auto *slots = static_cast<const std::int32_t *>(call.inputs[slotsAt]);
    auto *slotOf = context->shared<std::int64_t>();
    const Operand none{nullptr, ElementType::f32};
    auto in = [&](std::size_t i) { return operandOf(spec, call, i); };
    auto out = [&](std::size_t i) { return resultOf(spec, call, i); };
    if (asksPlaces()) {
      // Of ones only is -1.
      MTPLAN_CUDA(cudaMemsetAsync(slotOf, 0xFF, placesBytes(),
                                  context->stream().get()));
      launch(*context, {blocksFor(elements, kThreads), 1, kThreads}, tellPlaces,
             slots, places, elements, slotOf);
    }
    const auto packsOf = [&](std::int64_t rows) {
      return Grid{blocksFor(rows * blocksFor(places.width, kPack), kThreads), 1,
                  kThreads};
    };
    if (spec.kernel == "moe_dispatch") {
      gather<R>(*context, in(0), none, out(0), places.rows(), places.width,
                PlaceSource{slotOf, places.experts});
    } else if (spec.kernel == "moe_dispatch_grad") {
      launch(*context, packsOf(places.tokens()), sumPlaces<R>, in(1), none,
             slots, places, out(0));
    } else if (spec.kernel == "moe_combine") {
      launch(*context, packsOf(places.tokens()), sumPlaces<R>, in(0), in(1),
             slots, places, out(0));
    } else {
      launch(*context, packsOf(places.rows()), placesGrad<R>, in(3), in(1),
             static_cast<const std::int64_t *>(slotOf), places, places.rows(),
             out(0));
      launch(*context, {blocksFor(elements, kThreads / kWarp), 1, kThreads},
             gatesGrad<R>, in(0), slots, in(3), places, elements, out(1));
    }
  }

private:
  std::size_t slotsPlace() const {
    return spec.kernel == "moe_dispatch"        ? 1
           : spec.kernel == "moe_dispatch_grad" ? 0
                                                : 2;
  }
  std::size_t placesPlace() const {
    return spec.kernel == "moe_dispatch_grad" ? 1 : 0;
  }
  /// Whether a place has to know its token.
  bool asksPlaces() const {
    return spec.kernel == "moe_dispatch" || spec.kernel == "moe_combine_grad";
  }
  std::size_t placesBytes() const {
    return static_cast<std::size_t>(places.rows()) * sizeof(std::int64_t);
  }

  const SharedContext context;
  const KernelSpec spec;
  const std::size_t slotsAt;
  const Places places;
  const std::int64_t elements;
};

} // namespace

MadeKernel makeExperts(const KernelSpec &spec, const SharedContext &context) {
  return makeOf<Experts>(spec, context);
}

} // namespace mtplan::runtime::cuda
