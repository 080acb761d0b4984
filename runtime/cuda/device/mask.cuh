//===- mask.cuh - Dropout's masks, drawn where they are needed --*- C++ -*-===//
//
// As runtime/random says: an element is drawn from its index in the whole
// tensor, eight to a draw, so no mask is ever stored.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_MASK_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_MASK_CUH

#include <string_view>

#include "runtime/backend/step_numbers.h"
#include "runtime/cuda/device/elements.cuh"
#include "runtime/random/draws.h"
#include "runtime/random/split_mix.h"

namespace mtplan::runtime::cuda {

/// Of one step.
struct Mask {
  std::uint32_t key0, key1;
  std::uint64_t stream;
  std::uint32_t limit; ///< bits from here on keep; 0: all do
  double factor;       ///< of what is kept

  __device__ bool drops() const { return limit > 0; }

  /// As runtime::Stream::maskWordsAt has it.
  __device__ PhiloxCounter wordsOf(std::uint64_t draw) const {
    return philox4x32<kMaskRounds>({static_cast<std::uint32_t>(draw),
                                    static_cast<std::uint32_t>(draw >> 32),
                                    static_cast<std::uint32_t>(stream),
                                    static_cast<std::uint32_t>(stream >> 32)},
                                   {key0, key1});
  }

  /// \param half  0 or 1
  template <typename R>
  __device__ R valueOf(std::uint32_t word, unsigned half) const {
    return ((word >> 16 * half) & kMaskBits) < limit ? R(0)
                                                     : static_cast<R>(factor);
  }

  /// What the element is multiplied by.
  template <typename R> __device__ R at(std::int64_t index) const {
    if (!drops())
      return R(1);
    const PhiloxCounter words =
        wordsOf(static_cast<std::uint64_t>(index) / kMaskDraw);
    const unsigned i = static_cast<unsigned>(index % kMaskDraw);
    // Not words[i / 2]: that would put them into memory.
    return valueOf<R>(i < 2   ? words[0]
                      : i < 4 ? words[1]
                      : i < 6 ? words[2]
                              : words[3],
                      i % 2);
  }

  /// Multiplies elements index, index + 1, ...
  template <typename R>
  __device__ void apply(std::int64_t index, R (&values)[kPack]) const {
    if (!drops())
      return;
    if (index % kMaskDraw == 0) {
      static_assert(kPack == kMaskDraw);
      const PhiloxCounter words =
          wordsOf(static_cast<std::uint64_t>(index) / kMaskDraw);
#pragma unroll
      for (unsigned i = 0; i < kPack; ++i)
        values[i] *= valueOf<R>(words[i / 2], i % 2);
      return;
    }
    for (int i = 0; i < kPack; ++i)
      values[i] *= at<R>(index + i);
  }
};

/// Of any step: which it is, is read on the device.
struct Masks {
  const StepNumbers *step;
  std::uint64_t stream; ///< of all steps
  std::uint32_t limit;
  double factor;

  /// \param numbers  on the device
  Masks(const StepNumbers *numbers, std::string_view name, std::int64_t copy,
        double rate)
      : step(numbers), stream(streamOfAllSteps(Purpose::mask, name, copy)),
        limit(maskLimit(rate)), factor(maskFactor(rate)) {}

  /// As runtime::Stream::ofMask has it.
  __device__ Mask now() const {
    if (limit == 0 || !step->drops)
      return {0, 0, 0, 0, 1.0};
    const std::uint64_t ofStep =
        splitMix(stream ^ static_cast<std::uint64_t>(step->step));
    return {static_cast<std::uint32_t>(step->seed),
            static_cast<std::uint32_t>(step->seed >> 32), splitMix(ofStep),
            limit, factor};
  }
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_MASK_CUH
