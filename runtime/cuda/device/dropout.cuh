//===- dropout.cuh - Dropout and its masks ----------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_DROPOUT_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_DROPOUT_CUH

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/backend/step_numbers.h"
#include "runtime/backend/tensor_view.h"
#include "runtime/cuda/device/addend.cuh"
#include "runtime/cuda/device/elements.cuh"
#include "runtime/random/draws.h"
#include "runtime/random/philox.h"

namespace mtplan::runtime::cuda {

inline constexpr unsigned kDropoutThreads = 256;

/// Holds the dropout mask of one step.
struct Mask {
  std::uint32_t key0, key1;
  std::uint64_t stream;
  std::uint32_t limit; ///< smaller random bits drop an element;
                       ///< 0: no dropout
  double factor;       ///< multiplies the elements that are kept

  __device__ bool drops() const { return limit > 0; }

  /// Returns the words of a draw, like runtime::Stream::maskWordsAt.
  __device__ PhiloxCounter wordsOf(std::uint64_t draw) const {
    return philox4x32<kMaskRounds>({static_cast<std::uint32_t>(draw),
                                    static_cast<std::uint32_t>(draw >> 32),
                                    static_cast<std::uint32_t>(stream),
                                    static_cast<std::uint32_t>(stream >> 32)},
                                   {key0, key1});
  }

  /// Returns the factor of one element, which one half of `word` determines.
  /// \param half  0: the lower 16 bits, 1: the upper
  template <typename R>
  __device__ R valueOf(std::uint32_t word, unsigned half) const {
    return ((word >> 16 * half) & kMaskBits) < limit ? R(0)
                                                     : static_cast<R>(factor);
  }

  template <typename R> __device__ R at(std::int64_t index) const {
    if (!drops())
      return R(1);
    const PhiloxCounter words =
        wordsOf(static_cast<std::uint64_t>(index) / kMaskDraw);
    const unsigned i = static_cast<unsigned>(index % kMaskDraw);
    // A dynamic index such as words[i / 2] would move the words from registers
    // to local memory.
    return valueOf<R>(i < 2   ? words[0]
                      : i < 4 ? words[1]
                      : i < 6 ? words[2]
                              : words[3],
                      i % 2);
  }

  /// Returns the words for elements [index, index + kPack), which are zeros
  /// without dropout.
  __device__ PhiloxCounter wordsOfPack(std::int64_t index) const {
    static_assert(kPack == kMaskDraw);
    if (!drops())
      return {};
    const auto draw = static_cast<std::uint64_t>(index) / kMaskDraw;
    const PhiloxCounter words = wordsOf(draw);
    const unsigned skipped = index % kMaskDraw;
    return skipped > 0 ? shifted(words, wordsOf(draw + 1), skipped) : words;
  }

  /// Multiplies a pack by the factors that the pack's words determine.
  template <typename R>
  __device__ void apply(const PhiloxCounter &words, R (&values)[kPack]) const {
    if (!drops())
      return;
#pragma unroll
    for (unsigned i = 0; i < kPack; ++i)
      values[i] *= valueOf<R>(words[i / 2], i % 2);
  }

  /// Multiplies a pack by the factors of elements [index, index + kPack).
  template <typename R>
  __device__ void apply(std::int64_t index, R (&values)[kPack]) const {
    apply(wordsOfPack(index), values);
  }

private:
  /// Skips the first `skipped` elements of two consecutive draws, and returns
  /// the next kMaskDraw elements. The bits of `skipped` select shifts by four,
  /// two and one elements, because dynamic indices would move the words to
  /// local memory.
  static __device__ PhiloxCounter shifted(const PhiloxCounter &first,
                                          const PhiloxCounter &second,
                                          unsigned skipped) {
    std::uint32_t words[] = {first[0],  first[1],  first[2],  first[3],
                             second[0], second[1], second[2], second[3]};
#pragma unroll
    for (unsigned elements = 4; elements > 1; elements /= 2)
#pragma unroll
      for (unsigned w = 0; w + elements / 2 < 8; ++w)
        words[w] = skipped & elements ? words[w + elements / 2] : words[w];
    PhiloxCounter made;
#pragma unroll
    for (unsigned w = 0; w < 4; ++w)
      made[w] = skipped & 1 ? words[w] >> 16 | words[w + 1] << 16 : words[w];
    return made;
  }
};

/// Describes the masks of one dropout kernel in all steps. A kernel draws the
/// elements of its mask by Philox from their indices in the global tensor, as
/// runtime/random specifies, and stores no mask. The only exception is the
/// backward pass of attention on tensor cores, which stores one bit per score
/// (KeptScores). One draw yields eight elements.
struct Masks {
  const StepNumbers *step;
  std::uint64_t stream; ///< the mask's id; now() mixes in the step's number
  std::uint32_t limit;
  double factor;

  /// \param numbers  points to device memory
  Masks(const StepNumbers *numbers, std::string_view name, std::int64_t copy,
        double rate)
      : step(numbers), stream(streamOfAllSteps(Purpose::mask, name, copy)),
        limit(maskLimit(rate)), factor(maskFactor(rate)) {}

  /// Returns the mask of the current step, like runtime::Stream::ofMask.
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

/// Describes the position of a shard in the global tensor. A dimension that is
/// not sharded is merged into the previous dimension.
struct Piece {
  int dims = 1;
  std::int64_t sizes[kMostDims] = {1}, offsets[kMostDims] = {},
               globals[kMostDims] = {1};

  /// Returns the index in the global tensor of the first element of a row (a
  /// row spans the last dimension).
  __device__ std::int64_t indexOf(std::int64_t row) const {
    std::int64_t index = offsets[dims - 1], size = globals[dims - 1];
    for (int d = dims - 2; d >= 0; --d) {
      const std::int64_t next = quotient(row, sizes[d]);
      index += (offsets[d] + row - next * sizes[d]) * size;
      row = next;
      size *= globals[d];
    }
    return index;
  }
};

/// Returns the position of a rank's shard in the global tensor.
/// \throws std::invalid_argument if more than kMostDims dimensions remain after
/// merging
inline Piece pieceOfWhole(const TensorView &view) {
  // The vectors hold the last dimension first, and are reversed below.
  std::vector<std::int64_t> sizes, offsets, globals;
  for (std::size_t d = view.shape.size(); d-- > 0;) {
    const std::int64_t size = view.shape[d];
    const Span span = view.pieces.empty() ? Span{0, size} : view.pieces[d];
    if (!sizes.empty() && sizes.back() == globals.back()) {
      offsets.back() = span.offset * globals.back();
      globals.back() *= span.global;
      sizes.back() *= size;
      continue;
    }
    sizes.push_back(size);
    offsets.push_back(span.offset);
    globals.push_back(span.global);
  }
  if (sizes.size() > kMostDims)
    throw std::invalid_argument("is sharded along more than " +
                                std::to_string(kMostDims) + " dimensions");
  Piece piece;
  piece.dims = std::max(1, static_cast<int>(sizes.size()));
  std::reverse_copy(sizes.begin(), sizes.end(), piece.sizes);
  std::reverse_copy(offsets.begin(), offsets.end(), piece.offsets);
  std::reverse_copy(globals.begin(), globals.end(), piece.globals);
  return piece;
}

/// Returns the number of packs per thread of dropOut (dropoutPacks), or of
/// blocks per multiprocessor (dropoutBlocks). Wide elements need more
/// registers.
constexpr int dropoutPacks(bool isBf16) { return isBf16 ? 2 : 1; }
constexpr int dropoutBlocks(bool isBf16, bool isDouble) {
  return isBf16 ? 4 : isDouble ? 2 : 5;
}

/// Applies dropout, then adds the addend. A thread draws random bits while it
/// waits for its operands.
/// \tparam Bf16  whether all tensors are bf16
template <typename R, bool Bf16>
__global__ void __launch_bounds__(kDropoutThreads,
                                  dropoutBlocks(Bf16,
                                                sizeof(R) == sizeof(double)))
    dropOut(Operand from, Addend addend, Result to, Piece piece,
            std::int64_t rows, std::int64_t before, Masks masks) {
  if constexpr (Bf16)
    from.type = addend.data.type = addend.between = to.type = ElementType::bf16;
  constexpr int kPacks = dropoutPacks(Bf16);
  const std::int64_t width = piece.sizes[piece.dims - 1];
  const std::int64_t packs = (width + kPack - 1) / kPack;
  RowPack at[kPacks];
  HeldPack<R> held[kPacks], other[kPacks];
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    const std::int64_t pack =
        (std::int64_t{blockIdx.x} * kPacks + p) * blockDim.x + threadIdx.x;
    // A tensor that is not sharded is one row, and needs no division.
    at[p].row = rows == 1 ? 0 : quotient(pack, packs);
    at[p].first = (pack - at[p].row * packs) * kPack;
    at[p].count = pack < rows * packs ? packAt(at[p].first, width) : 0;
    const std::int64_t first = at[p].row * width + at[p].first;
    held[p].load(from, first, at[p].count);
    if (addend.data.data)
      other[p].load(addend.data, first, at[p].count);
  }
  const Mask mask = masks.now();
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    const auto [row, h, count] = at[p];
    const PhiloxCounter words =
        mask.wordsOfPack(before + piece.indexOf(row) + h);
    R x[kPack];
    held[p].widen(from.type, x);
    mask.apply(words, x);
    addend.addTo(x, other[p]);
    store(to, row * width + h, count, x);
  }
}

template <typename R>
void dropout(cudaStream_t stream, const Operand &from, const Result &to,
             const TensorView &view, std::int64_t microBatch,
             const Masks &masks, const Addend &addend = {}) {
  const Piece piece = pieceOfWhole(view);
  const std::int64_t width = piece.sizes[piece.dims - 1];
  const std::int64_t rows = view.elements() / width;
  std::int64_t whole = 1;
  for (int d = 0; d < piece.dims; ++d)
    whole *= piece.globals[d];
  const auto queue = [&](auto kernel, int packs) {
    launch(stream,
           gridOf(blocksFor(rows * blocksFor(width, kPack), packs),
                  kDropoutThreads),
           kernel, from, addend, to, piece, rows, microBatch * whole, masks);
  };
  if constexpr (std::is_same_v<R, float>)
    if (areBf16(from.type, to.type) && addend.isBf16())
      return queue(dropOut<R, true>, dropoutPacks(true));
  queue(dropOut<R, false>, dropoutPacks(false));
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_DROPOUT_CUH
