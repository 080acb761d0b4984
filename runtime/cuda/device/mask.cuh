//===- mask.cuh - Dropout's masks, drawn where they are needed --*- C++ -*-===//
//
// As runtime/random says: an element is drawn from its index in the whole
// tensor, four to a draw, so no mask is ever stored.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_MASK_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_MASK_CUH

#include <algorithm>
#include <cmath>
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
  std::uint32_t limit; ///< words from here on keep; 0: all do
  double factor;       ///< of what is kept

  __device__ bool drops() const { return limit > 0; }

  /// Philox4x32-10, as in runtime/random/philox.h.
  __device__ Several<std::uint32_t, 4> wordsOf(std::uint64_t draw) const {
    std::uint32_t a = static_cast<std::uint32_t>(draw),
                  b = static_cast<std::uint32_t>(draw >> 32),
                  c = static_cast<std::uint32_t>(stream),
                  d = static_cast<std::uint32_t>(stream >> 32);
    std::uint32_t k0 = key0, k1 = key1;
#pragma unroll
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t left = std::uint64_t{0xD2511F53U} * a;
      const std::uint64_t right = std::uint64_t{0xCD9E8D57U} * c;
      a = static_cast<std::uint32_t>(right >> 32) ^ b ^ k0;
      b = static_cast<std::uint32_t>(right);
      c = static_cast<std::uint32_t>(left >> 32) ^ d ^ k1;
      d = static_cast<std::uint32_t>(left);
      k0 += 0x9E3779B9U;
      k1 += 0xBB67AE85U;
    }
    return {{a, b, c, d}};
  }

  template <typename R> __device__ R valueOf(std::uint32_t word) const {
    return word < limit ? R(0) : static_cast<R>(factor);
  }

  /// What the element is multiplied by.
  template <typename R> __device__ R at(std::int64_t index) const {
    if (!drops())
      return R(1);
    const Several<std::uint32_t, 4> words =
        wordsOf(static_cast<std::uint64_t>(index) / 4);
    const unsigned of = static_cast<unsigned>(index % 4);
    // Not words[of]: that would put them into memory.
    return valueOf<R>(of == 0   ? words[0]
                      : of == 1 ? words[1]
                      : of == 2 ? words[2]
                                : words[3]);
  }

  /// Multiplies elements index, index + 1, ...
  template <typename R>
  __device__ void apply(std::int64_t index, R (&values)[kPack]) const {
    if (!drops())
      return;
    if (index % 4 == 0) {
#pragma unroll
      for (int half = 0; half < kPack; half += 4) {
        const Several<std::uint32_t, 4> words =
            wordsOf(static_cast<std::uint64_t>(index + half) / 4);
#pragma unroll
        for (int i = 0; i < 4; ++i)
          values[half + i] *= valueOf<R>(words[i]);
      }
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
        // The least word that, as a share of 2^32, reaches the rate.
        limit(static_cast<std::uint32_t>(
            std::min(std::ceil(rate * 4294967296.0), 4294967295.0))),
        factor(1.0 / (1.0 - rate)) {}

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
