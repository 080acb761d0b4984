//===- reduce.cpp - Ordered reductions ------------------------------------===//

#include "runtime/communicator/reduce.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "runtime/backend/element.h"

namespace mtplan::runtime {

namespace {

#if defined(__x86_64__)

/// Tests for AVX2, which implies F16C and which every compiler can test for.
bool hasInstructions() {
  static const bool has = __builtin_cpu_supports("avx2");
  return has;
}

/// Converts all but the last `count` % 8 elements. Returns the number of
/// converted elements.
__attribute__((target("avx,f16c"))) std::int64_t
widenByEight(const F16 *from, float *to, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(
                                 reinterpret_cast<const __m128i *>(from + i))));
  return i;
}

__attribute__((target("avx,f16c"))) std::int64_t
narrowByEight(const float *from, F16 *to, std::int64_t count) {
  // A NaN becomes the quiet NaN with its sign, as in toF16.
  const __m256 sign = _mm256_set1_ps(-0.0F);
  const __m256 none = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FC00000));
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256 value = _mm256_loadu_ps(from + i);
    const __m256 plain =
        _mm256_blendv_ps(value, _mm256_or_ps(_mm256_and_ps(value, sign), none),
                         _mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    _mm_storeu_si128(reinterpret_cast<__m128i *>(to + i),
                     _mm256_cvtps_ph(plain, _MM_FROUND_TO_NEAREST_INT));
  }
  return i;
}

#endif

} // namespace

void widen(const F16 *from, float *to, std::int64_t count) {
  std::int64_t i = 0;
#if defined(__x86_64__)
  if (hasInstructions())
    i = widenByEight(from, to, count);
#endif
  for (; i < count; ++i)
    to[i] = toFloat(from[i]);
}

void narrow(const float *from, F16 *to, std::int64_t count) {
  std::int64_t i = 0;
#if defined(__x86_64__)
  if (hasInstructions())
    i = narrowByEight(from, to, count);
#endif
  for (; i < count; ++i)
    to[i] = toF16(from[i]);
}
namespace {

/// The sums of a block of this many elements stay in the L1 cache.
constexpr std::int64_t kBlock = 1024;

// widened() converts to the accumulation type; round() converts back.
double widened(double value) { return value; }
float widened(float value) { return value; }
float widened(Bf16 value) { return toFloat(value); }
std::uint32_t widened(std::int32_t value) {
  return static_cast<std::uint32_t>(value);
}
void round(double from, double &to) { to = from; }
void round(float from, float &to) { to = from; }
void round(float from, Bf16 &to) { to = toBf16(from); }
void round(std::uint32_t from, std::int32_t &to) {
  to = static_cast<std::int32_t>(from);
}

struct Sum {
  template <typename T> static T of(T so, T next) { return so + next; }
};

struct Max {
  template <typename T> static T of(T so, T next) {
    return next > so || next != next ? next : so;
  }
  static std::uint32_t of(std::uint32_t so, std::uint32_t next) {
    return static_cast<std::int32_t>(next) > static_cast<std::int32_t>(so)
               ? next
               : so;
  }
};

/// Averages like NCCL: the sum is divided before it is rounded, and integers
/// are divided with truncation.
struct Avg : Sum {};

template <typename Operation, typename T>
void finish(std::array<T, kBlock> &so, std::int64_t count, std::size_t places) {
  if constexpr (std::is_same_v<Operation, Avg>)
    for (std::int64_t i = 0; i < count; ++i) {
      if constexpr (std::is_same_v<T, std::uint32_t>)
        so[i] = static_cast<std::uint32_t>(static_cast<std::int32_t>(so[i]) /
                                           static_cast<std::int32_t>(places));
      else
        so[i] /= static_cast<T>(places);
    }
}

template <typename T, typename Operation>
void reduceBlock(std::span<const void *const> sources, T *output,
                 std::int64_t first, std::int64_t count) {
  using Wide = decltype(widened(T()));
  std::array<Wide, kBlock> so;
  const T *one = static_cast<const T *>(sources[0]) + first;
  const T *two = static_cast<const T *>(sources[1]) + first;
  for (std::int64_t i = 0; i < count; ++i)
    so[i] = Operation::of(widened(one[i]), widened(two[i]));
  for (const void *source : sources.subspan(2)) {
    const T *next = static_cast<const T *>(source) + first;
    for (std::int64_t i = 0; i < count; ++i)
      so[i] = Operation::of(so[i], widened(next[i]));
  }
  finish<Operation>(so, count, sources.size());
  for (std::int64_t i = 0; i < count; ++i)
    round(so[i], output[i]);
}

/// Reduces at most kBlock half-precision elements in single precision, and
/// rounds each result once.
template <typename Operation>
void reduceHalves(std::span<const void *const> sources, F16 *output,
                  std::int64_t first, std::int64_t count) {
  std::array<float, kBlock> so, next;
  widen(static_cast<const F16 *>(sources[0]) + first, so.data(), count);
  for (const void *source : sources.subspan(1)) {
    widen(static_cast<const F16 *>(source) + first, next.data(), count);
    for (std::int64_t i = 0; i < count; ++i)
      so[i] = Operation::of(so[i], next[i]);
  }
  finish<Operation>(so, count, sources.size());
  narrow(so.data(), output, count);
}

template <typename T, typename Operation>
void reduceAs(std::span<const void *const> sources,
              std::span<void *const> outputs, std::int64_t first,
              std::int64_t count) {
  for (const std::int64_t end = first + count; first < end; first += kBlock) {
    const std::int64_t block = std::min(kBlock, end - first);
    T *reduced = static_cast<T *>(outputs[0]) + first;
    if (sources.size() > 1) {
      if constexpr (std::is_same_v<T, F16>)
        reduceHalves<Operation>(sources, reduced, first, block);
      else
        reduceBlock<T, Operation>(sources, reduced, first, block);
    } else if (sources[0] != outputs[0])
      std::memcpy(reduced, static_cast<const T *>(sources[0]) + first,
                  block * sizeof(T));
    for (void *output : outputs.subspan(1))
      std::memcpy(static_cast<T *>(output) + first, reduced, block * sizeof(T));
  }
}

template <typename Operation>
void reduceWith(ElementType type, std::span<const void *const> sources,
                std::span<void *const> outputs, std::int64_t first,
                std::int64_t count) {
  switch (type) {
  case ElementType::f64:
    return reduceAs<double, Operation>(sources, outputs, first, count);
  case ElementType::f32:
    return reduceAs<float, Operation>(sources, outputs, first, count);
  case ElementType::f16:
    return reduceAs<F16, Operation>(sources, outputs, first, count);
  case ElementType::bf16:
    return reduceAs<Bf16, Operation>(sources, outputs, first, count);
  case ElementType::i32:
    return reduceAs<std::int32_t, Operation>(sources, outputs, first, count);
  }
}

} // namespace

void reduceInOrder(ElementType type, Reduction reduction,
                   std::span<const void *const> sources,
                   std::span<void *const> outputs, std::int64_t first,
                   std::int64_t count) {
  switch (reduction) {
  case Reduction::sum:
    return reduceWith<Sum>(type, sources, outputs, first, count);
  case Reduction::max:
    return reduceWith<Max>(type, sources, outputs, first, count);
  case Reduction::avg:
    return reduceWith<Avg>(type, sources, outputs, first, count);
  }
}

Share shareOf(std::int64_t count, int place, int size) {
  const std::int64_t blocks = (count + kBlock - 1) / kBlock;
  const std::int64_t first = std::min(count, blocks * place / size * kBlock);
  const std::int64_t end =
      std::min(count, blocks * (place + 1) / size * kBlock);
  return {first, end - first};
}

void copyRows(void *to, std::int64_t toStride, const void *from,
              std::int64_t fromStride, std::int64_t rows, std::int64_t bytes) {
  if (bytes == 0 || rows == 0)
    return;
  if (bytes == toStride && bytes == fromStride) {
    bytes *= rows;
    rows = 1;
  }
  for (std::int64_t row = 0; row < rows; ++row)
    std::memcpy(static_cast<char *>(to) + row * toStride,
                static_cast<const char *>(from) + row * fromStride, bytes);
}

} // namespace mtplan::runtime
