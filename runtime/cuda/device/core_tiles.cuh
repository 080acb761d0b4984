//===- core_tiles.cuh - Tiles in shared memory, for tensor cores *- C++ -*-===//
//
// A block of four warps keeps rows of up to Width 16-bit elements in shared
// memory, in packs of eight, with one more pack per row: packs of one column in
// eight rows lie in different banks, and all addresses are a constant away from
// the lane's first. A warp computes strips of sixteen rows.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_CORE_TILES_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_CORE_TILES_CUH

#include <initializer_list>

#include "runtime/cuda/device/attention_tiles.cuh"
#include "runtime/cuda/device/tensor_core.cuh"

namespace mtplan::runtime::cuda {

inline constexpr int kCoreWarps = 4;
inline constexpr unsigned kCoreThreads = kCoreWarps * kWarp;
inline constexpr int kStrip = 16;
inline constexpr double kLog2E = 1.4426950408889634;
inline constexpr int kMostOnCores = 128; ///< the widest head
/// The largest limit of a mask: the bits of a 16-bit float's infinity.
inline constexpr std::uint32_t kMostLimitOnCores = 0x7C00;

/// The sums that a lane holds of Strips strips by Columns columns
/// (tensor_core.cuh).
template <int Strips, int Columns>
using CoreSums = float[Strips][Columns / 8][4];

inline __device__ int laneOfWarp() {
  return static_cast<int>(threadIdx.x % kWarp);
}
inline __device__ int warpOfBlock() {
  return static_cast<int>(threadIdx.x / kWarp);
}

/// The tile of rows, head and sample of a block.
struct CoreBlock {
  int tile, tiles, head, sample, rows;

  /// \param ofTile  rows per tile
  __device__ CoreBlock(unsigned block, std::int64_t allRows, int ofTile,
                       std::int64_t heads)
      : tiles(static_cast<int>(blocksFor(allRows, ofTile))), rows(ofTile) {
    const int at = static_cast<int>(block);
    tile = at % tiles;
    head = at / tiles % static_cast<int>(heads);
    sample = at / tiles / static_cast<int>(heads);
  }
  /// Returns the first row, where the last tiles of a head are processed first.
  __device__ int lastFirst() const { return (tiles - 1 - tile) * rows; }
};

/// Heads::visible in few registers; positions are less than 2^31.
struct Sight {
  int past, keys;

  explicit __device__ Sight(const Heads &all)
      : past(
            static_cast<int>(all.causal ? all.positions.offset + 1 : all.keys)),
        keys(static_cast<int>(all.keys)) {}
  __device__ int of(int query) const {
    return query + past < keys ? query + past : keys;
  }
};

/// Elements from one row of a tile to the next.
template <int Width> inline constexpr int kPitch = Width + kPack;
/// Returns the bytes of `rows` rows.
template <int Width> constexpr unsigned tileBytes(int rows) {
  return static_cast<unsigned>(rows * kPitch<Width> * 2);
}

/// Begins to copy Rows rows of `width` elements, of which `there` exist, at
/// least one; all other elements become zeros.
template <int Rows, int Width, typename T>
__device__ void beginRows(T *tile, const T *from, int stride, int there,
                          int width) {
  constexpr int kPacks = Width / kPack;
  constexpr int kAtOnce = static_cast<int>(kCoreThreads) / kPacks;
  static_assert(Rows % kAtOnce == 0);
  const int row = static_cast<int>(threadIdx.x) / kPacks,
            pack = static_cast<int>(threadIdx.x) % kPacks;
  T *const to = tile + row * kPitch<Width> + pack * kPack;
  const bool within = pack * kPack < width;
#pragma unroll
  for (int r = 0; r < Rows; r += kAtOnce) {
    const bool here = within && row + r < there;
    const int at = here ? (row + r) * stride + pack * kPack : 0;
    beginCopy<sizeof(T) * kPack>(to + r * kPitch<Width>, from + at, here);
  }
}

/// Loads rows row ... row + 15 and columns column ... column + 15 as a left
/// factor (operand A of mma).
template <int Width, typename T>
__device__ void loadLeft(std::uint32_t (&left)[4], const T *tile, int row,
                         int column) {
  const int lane = laneOfWarp();
  loadMatrices<false>(left, tile + (row + lane % 16) * kPitch<Width> + column +
                                lane / 16 * kPack);
}

/// Loads the same as two right factors (operands B), whose rows are summed
/// over: right[0, 1] for the first eight columns, right[2, 3] for the others.
template <int Width, typename T>
__device__ void loadRight(std::uint32_t (&right)[4], const T *tile, int row,
                          int column) {
  const int lane = laneOfWarp();
  loadMatrices<true>(right, tile + (row + lane % 16) * kPitch<Width> + column +
                                lane / 16 * kPack);
}

/// Loads the same transposed: columns are summed over, and right[0, 1] is for
/// the first eight rows.
template <int Width, typename T>
__device__ void loadTurned(std::uint32_t (&right)[4], const T *tile, int row,
                           int column) {
  const int lane = laneOfWarp();
  loadMatrices<false>(right,
                      tile + (row + lane / 16 * 8 + lane % 8) * kPitch<Width> +
                          column + lane / 8 % 2 * kPack);
}

/// Computes the products of rows of `left`, from `row` on, with rows of
/// `right`.
template <int Width, int Strips, int Columns, typename T>
__device__ void dotRows(CoreSums<Strips, Columns> &sums, const T *left, int row,
                        const T *right) {
#pragma unroll
  for (int s = 0; s < Strips; ++s)
#pragma unroll
    for (int n = 0; n < Columns / 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        sums[s][n][e] = 0.0F;
#pragma unroll
  for (int h = 0; h < Width; h += 16) {
    std::uint32_t rows[Strips][4];
#pragma unroll
    for (int s = 0; s < Strips; ++s)
      loadLeft<Width>(rows[s], left, row + s * kStrip, h);
#pragma unroll
    for (int n = 0; n < Columns; n += 16) {
      std::uint32_t columns[4];
      loadTurned<Width>(columns, right, n, h);
#pragma unroll
      for (int s = 0; s < Strips; ++s) {
        multiplyAdd<T>(sums[s][n / 8], rows[s], columns[0], columns[1]);
        multiplyAdd<T>(sums[s][n / 8 + 1], rows[s], columns[2], columns[3]);
      }
    }
  }
}

/// Sets scores of keys that do not exist or are not visible to minus infinity.
/// \tparam KeysAreRows  whether keys, and not queries, are rows of the sums
/// \param query, key     the first ones of the sums
template <bool KeysAreRows, int Strips, int Columns>
__device__ void hideUnseen(CoreSums<Strips, Columns> &scores,
                           const Sight &sight, int query, int key) {
  const int lane = laneOfWarp();
#pragma unroll
  for (int s = 0; s < Strips; ++s)
#pragma unroll
    for (int n = 0; n < Columns / 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int row = s * kStrip + e / 2 * 8 + lane / 4,
                  column = n * 8 + lane % 4 * 2 + e % 2;
        if (key + (KeysAreRows ? row : column) >=
            sight.of(query + (KeysAreRows ? column : row)))
          scores[s][n][e] = -INFINITY;
      }
}

/// Rounds two numbers to 16 bits each.
template <typename T> __device__ std::uint32_t pairOf(float low, float high) {
  std::uint32_t bits;
  if constexpr (std::is_same_v<T, __half>) {
    const __half2 both = __floats2half2_rn(low, high);
    memcpy(&bits, &both, sizeof(bits));
  } else {
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    memcpy(&bits, &both, sizeof(bits));
  }
  return bits;
}

/// A lane's sums, rounded to 16 bits, in pairs: rows g and g + 8 of columns
/// 8n + 2t, + 1.
template <int Strips, int Columns>
using CorePairs = std::uint32_t[Strips][Columns / 8][2];

/// Returns the pair of a row of strip s; sums are rounded.
template <typename T, int Strips, int Eights>
__device__ std::uint32_t pairAt(const std::uint32_t (&pairs)[Strips][Eights][2],
                                int s, int n, int half) {
  return pairs[s][n][half];
}
template <typename T, int Strips, int Eights>
__device__ std::uint32_t pairAt(const float (&sums)[Strips][Eights][4], int s,
                                int n, int half) {
  return pairOf<T>(sums[s][n][half * 2], sums[s][n][half * 2 + 1]);
}

/// Rounds all sums to pairs.
template <typename T, int Strips, int Columns>
__device__ void roundSums(CorePairs<Strips, Columns> &pairs,
                          const CoreSums<Strips, Columns> &sums) {
#pragma unroll
  for (int s = 0; s < Strips; ++s)
#pragma unroll
    for (int n = 0; n < Columns / 8; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        pairs[s][n][half] = pairAt<T>(sums, s, n, half);
}

/// Adds the rows of the tile, times weights.
/// \param weights  CorePairs, or CoreSums, which are rounded to T
template <int Width, int Columns, int Strips, typename Weights, typename T>
__device__ void addWeighted(CoreSums<Strips, Width> &sums,
                            const Weights &weights, const T *tile) {
#pragma unroll
  for (int k = 0; k < Columns; k += 16) {
    // Rounded sums already have the register layout of a left factor (operand
    // A).
    std::uint32_t left[Strips][4];
#pragma unroll
    for (int s = 0; s < Strips; ++s)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        left[s][i] = pairAt<T>(weights, s, k / 8 + i / 2, i % 2);
#pragma unroll
    for (int h = 0; h < Width; h += 16) {
      std::uint32_t rows[4];
      loadRight<Width>(rows, tile, k, h);
#pragma unroll
      for (int s = 0; s < Strips; ++s) {
        multiplyAdd<T>(sums[s][h / 8], left[s], rows[0], rows[1]);
        multiplyAdd<T>(sums[s][h / 8 + 1], left[s], rows[2], rows[3]);
      }
    }
  }
}

/// Stores this warp's sums, times a factor, to rows from `row` on, of which
/// `there` exist.
template <int Strips, int Width, typename T>
__device__ void storeSums(T *to, int stride, int row, int there, int width,
                          const CoreSums<Strips, Width> &sums, float factor) {
  const int lane = laneOfWarp();
#pragma unroll
  for (int s = 0; s < Strips; ++s)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = row + s * kStrip + half * 8 + lane / 4;
      if (r >= there)
        continue;
      T *const line = to + std::int64_t{r} * stride + lane % 4 * 2;
#pragma unroll
      for (int n = 0; n < Width / 8; ++n)
        if (n * 8 < width)
          *reinterpret_cast<std::uint32_t *>(line + n * 8) = pairOf<T>(
              sums[s][n][half * 2] * factor, sums[s][n][half * 2 + 1] * factor);
    }
}

/// Returns whether tensor cores can be used: all tensors are 16-bit, of one
/// type and aligned, and so are their rows. Biases, soft caps, scales that are
/// not positive and masks that keep less than one in 32 need the general
/// kernels.
inline bool suitCores(const Heads &all, const Masks &masks,
                      std::initializer_list<Operand> tensors) {
  const ElementType type = tensors.begin()->type;
  if ((type != ElementType::f16 && type != ElementType::bf16) ||
      all.width % kPack != 0 || all.table.data || !(all.scale > 0.0) ||
      all.softcap > 0.0 || masks.limit > kMostLimitOnCores)
    return false;
  for (const Operand &tensor : tensors)
    if (tensor.type != type ||
        reinterpret_cast<std::uintptr_t>(tensor.data) % sizeof(uint4) != 0)
      return false;
  return true;
}

/// Calls `use` with a null pointer of the 16-bit type's own C++ type.
template <typename Use> void withHalf(ElementType type, Use use) {
  if (type == ElementType::f16)
    use(static_cast<__half *>(nullptr));
  else
    use(static_cast<__nv_bfloat16 *>(nullptr));
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_CORE_TILES_CUH
