//===- experts.cuh - Dispatch to experts and combine ------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_EXPERTS_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_EXPERTS_CUH

#include "runtime/cuda/device/block_sum.cuh"

namespace mtplan::runtime::cuda {

/// Holds the shapes of a dispatch. The experts' buffers are
/// [experts][samples][count][width]. The slots [samples][positions][experts]
/// hold the index, below `count`, of a token in an expert's buffer.
struct Places {
  std::int64_t samples, positions, experts, count, width;

  std::int64_t tokens() const { return samples * positions; }
  std::int64_t slots() const { return tokens() * experts; }
  std::int64_t rows() const { return experts * samples * count; }

  /// Returns the row of the experts' buffers that a token has for an expert, or
  /// -1 if the token is not dispatched to the expert.
  __device__ std::int64_t rowOf(std::int64_t token, std::int64_t expert,
                                std::int32_t slot) const {
    if (slot < 0 || slot >= count)
      return -1;
    return (expert * samples + token / positions) * count + slot;
  }
};

/// Writes the index of each used slot to slotOf[row], where `row` is the slot's
/// row of the experts' buffers. Other elements are not written.
static __global__ void invertSlots(const std::int32_t *slots, Places places,
                                   std::int64_t elements,
                                   std::int64_t *slotOf) {
  const std::int64_t i = threadOfGrid();
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

/// Sums each token's rows over the experts, in the order of experts. Each row
/// is multiplied by its gate. A thread processes a pack.
/// \param gates  has an element per slot, or no data if all gates are 1
template <typename R>
__global__ void sumPlaces(Operand from, Operand gates,
                          const std::int32_t *slots, Places places, Result to) {
  const auto [token, h, count] = packOfThread(places.width);
  if (token >= places.samples * places.positions)
    return;
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

/// Computes the gradient of each row of the experts' buffers: the gradient of
/// the row's token, times the gate of its slot. A thread processes a pack.
template <typename R>
__global__ void placesGrad(Operand above, Operand gates,
                           const std::int64_t *slotOf, Places places,
                           std::int64_t rows, Result to) {
  const auto [row, h, count] = packOfThread(places.width);
  if (row >= rows)
    return;
  const std::int64_t slot = slotOf[row];
  R x[kPack] = {};
  if (slot >= 0) {
    const R gate = loadOne<R>(gates, slot);
    load(above, slot / places.experts * places.width + h, count, x);
    for (int i = 0; i < kPack; ++i)
      x[i] *= gate;
  }
  store(to, row * places.width + h, count, x);
}

/// Computes the gradient of each gate: the dot product of the expert's row and
/// the token's gradient. A warp processes a slot.
template <typename R>
__global__ void gatesGrad(Operand from, const std::int32_t *slots,
                          Operand above, Places places, std::int64_t elements,
                          Result to) {
  const std::int64_t slot = threadOfGrid() / kWarp;
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
  sum = overWarp(sum, Plus());
  if (threadIdx.x % kWarp == 0)
    storeOne(to, slot, sum);
}

/// Returns the scratch memory of moeDispatch and moeCombineGrad in bytes.
inline std::size_t placesScratch(const Places &places) {
  return static_cast<std::size_t>(places.rows()) * sizeof(std::int64_t);
}

/// Queues the computation of a table, and returns the table. The table holds
/// the slot of each row of the experts' buffers, or -1 if the row is unused.
inline std::int64_t *slotsOfPlaces(cudaStream_t stream,
                                   const std::int32_t *slots,
                                   const Places &places, void *scratch) {
  auto *slotOf = static_cast<std::int64_t *>(scratch);
  // Bytes of 0xFF make an integer -1.
  MTPLAN_CUDA(cudaMemsetAsync(slotOf, 0xFF, placesScratch(places), stream));
  launch(stream, gridOf(places.slots()), invertSlots, slots, places,
         places.slots(), slotOf);
  return slotOf;
}

/// Queues the copy of tokens to the experts' buffers; unused rows are zero.
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
  launch(stream, gridOfPacks(places.tokens(), places.width), sumPlaces<R>,
         above, kNone, slots, places, to);
}

/// Queues the sum over each token's experts, weighted by the gates.
template <typename R>
void moeCombine(cudaStream_t stream, const Operand &from, const Operand &gates,
                const std::int32_t *slots, const Result &to,
                const Places &places) {
  launch(stream, gridOfPacks(places.tokens(), places.width), sumPlaces<R>, from,
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
  launch(stream, gridOfPacks(places.rows(), places.width), placesGrad<R>, above,
         gates, slotOf, places, places.rows(), to);
  launch(stream, gridOf(places.slots() * kWarp), gatesGrad<R>, from, slots,
         above, places, places.slots(), toGates);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_EXPERTS_CUH
