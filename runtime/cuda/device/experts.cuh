//===- experts.cuh - Tokens to the experts' places and back -----*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_EXPERTS_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_EXPERTS_CUH

#include "runtime/cuda/device/rows.cuh"

namespace mtplan::runtime::cuda {

inline constexpr unsigned kExpertThreads = 256;

/// Slots [b, s, e] say which of an expert's places, [e, b, c, h], a token has.
struct Places {
  std::int64_t samples, positions, experts, count, width;

  std::int64_t tokens() const { return samples * positions; }
  std::int64_t slots() const { return tokens() * experts; }
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
static __global__ void tellPlaces(const std::int32_t *slots, Places places,
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
      std::int64_t{blockIdx.x} * (kExpertThreads / kWarp) + threadIdx.x / kWarp;
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

inline Grid packsOf(std::int64_t rows, std::int64_t width) {
  return {blocksFor(rows * blocksFor(width, kPack), kExpertThreads), 1,
          kExpertThreads};
}

/// Of those two that have to know a place's token.
inline std::size_t placesScratch(const Places &places) {
  return static_cast<std::size_t>(places.rows()) * sizeof(std::int64_t);
}

/// By place its slot, or -1.
inline std::int64_t *slotsOfPlaces(cudaStream_t stream,
                                   const std::int32_t *slots,
                                   const Places &places, void *scratch) {
  auto *slotOf = static_cast<std::int64_t *>(scratch);
  // Of ones only is -1.
  MTPLAN_CUDA(cudaMemsetAsync(slotOf, 0xFF, placesScratch(places), stream));
  launch(stream, {blocksFor(places.slots(), kExpertThreads), 1, kExpertThreads},
         tellPlaces, slots, places, places.slots(), slotOf);
  return slotOf;
}

template <typename R>
void moeDispatch(cudaStream_t stream, const Operand &from,
                 const std::int32_t *slots, const Result &to,
                 const Places &places, void *scratch) {
  gather<R>(stream, from, kNone, to, places.rows(), places.width,
            PlaceSource{slotsOfPlaces(stream, slots, places, scratch),
                        places.experts});
}

template <typename R>
void moeDispatchGrad(cudaStream_t stream, const std::int32_t *slots,
                     const Operand &above, const Result &to,
                     const Places &places) {
  launch(stream, packsOf(places.tokens(), places.width), sumPlaces<R>, above,
         kNone, slots, places, to);
}

template <typename R>
void moeCombine(cudaStream_t stream, const Operand &from, const Operand &gates,
                const std::int32_t *slots, const Result &to,
                const Places &places) {
  launch(stream, packsOf(places.tokens(), places.width), sumPlaces<R>, from,
         gates, slots, places, to);
}

template <typename R>
void moeCombineGrad(cudaStream_t stream, const Operand &from,
                    const Operand &gates, const std::int32_t *slots,
                    const Operand &above, const Result &to,
                    const Result &toGates, const Places &places,
                    void *scratch) {
  const std::int64_t *const slotOf =
      slotsOfPlaces(stream, slots, places, scratch);
  launch(stream, packsOf(places.rows(), places.width), placesGrad<R>, above,
         gates, slotOf, places, places.rows(), to);
  launch(stream,
         {blocksFor(places.slots(), kExpertThreads / kWarp), 1, kExpertThreads},
         gatesGrad<R>, from, slots, above, places, places.slots(), toGates);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_EXPERTS_CUH
