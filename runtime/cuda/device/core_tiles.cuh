//===- core_tiles.cuh - Tiles in shared memory, for tensor cores *- C++ -*-===//
//
// A block of four warps holds rows of Width 16-bit elements in shared memory. A
// row is padded by one pack of eight elements, so that the packs of one column
// in eight rows are in different banks. All addresses of a lane differ from the
// lane's first address by constants. A warp computes strips of sixteen rows.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_CORE_TILES_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_CORE_TILES_CUH

#include <bit>
#include <initializer_list>

#include "runtime/cuda/device/attention_tiles.cuh"
#include "runtime/cuda/device/tensor_core.cuh"

namespace mtplan::runtime::cuda {

inline constexpr int kCoreWarps = 4;
inline constexpr unsigned kCoreThreads = kCoreWarps * kWarp;
inline constexpr int kStrip = 16;
inline constexpr double kLog2E = 1.4426950408889634;
inline constexpr int kMostOnCores = 128; ///< features of the widest head
/// Bounds the limit of a mask (KeptPair). The bits of the bound are infinity in
/// f16.
inline constexpr std::uint32_t kMostLimitOnCores = 0x7C00;

/// Holds a lane's accumulators of a tile of Strips strips by Columns columns,
/// in the layout of tensor_core.cuh.
template <int Strips, int Columns>
using CoreSums = float[Strips][Columns / 8][4];

inline __device__ int laneOfWarp() {
  return static_cast<int>(threadIdx.x % kWarp);
}
inline __device__ int warpOfBlock() {
  return static_cast<int>(threadIdx.x / kWarp);
}

struct CoreBlock {
  int tile, tiles, head, sample, rows;

  __device__ CoreBlock(unsigned block, std::int64_t allRows, int ofTile,
                       std::int64_t heads)
      : tiles(static_cast<int>(blocksFor(allRows, ofTile))), rows(ofTile) {
    const int at = static_cast<int>(block);
    tile = at % tiles;
    head = at / tiles % static_cast<int>(heads);
    sample = at / tiles / static_cast<int>(heads);
  }
  /// Returns the first row of this block for kernels that schedule the last
  /// tiles of a head first.
  __device__ int lastFirst() const { return (tiles - 1 - tile) * rows; }
};

/// Computes Heads::visible with 32-bit numbers; positions must be below 2^31.
struct CausalMask {
  int past, keys;

  explicit __device__ CausalMask(const Heads &all)
      : past(
            static_cast<int>(all.causal ? all.positions.offset + 1 : all.keys)),
        keys(static_cast<int>(all.keys)) {}
  __device__ int of(int query) const {
    return query + past < keys ? query + past : keys;
  }
  /// Returns the largest number of keys that a query of the tile attends to.
  /// \param first  the first query of the tile
  /// \param left   the number of queries from `first` on
  __device__ int ofTile(int first, int queries, int left) const {
    return of(first + (left < queries ? left : queries) - 1);
  }
};

/// Sets the row stride of a tile in elements.
template <int Width> inline constexpr int kPitch = Width + kPack;
/// Returns the size of `rows` rows of a tile in bytes.
template <int Width> constexpr unsigned tileBytes(int rows) {
  return static_cast<unsigned>(rows * kPitch<Width> * 2);
}

/// Begins the asynchronous copy of Rows rows of `width` elements to a tile.
/// Only the first `there` rows (at least one) exist; all other elements become
/// zeros. Some threads copy nothing if Width is no power of two.
template <int Rows, int Width, typename T>
__device__ void beginRows(T *tile, const T *from, int stride, int there,
                          int width) {
  constexpr int kPacks = Width / kPack;
  constexpr int kAtOnce =
      static_cast<int>(std::bit_floor(kCoreThreads / kPacks));
  static_assert(Rows % kAtOnce == 0);
  const int row = static_cast<int>(threadIdx.x) / kPacks,
            pack = static_cast<int>(threadIdx.x) % kPacks;
  if (row >= kAtOnce)
    return;
  T *const to = tile + row * kPitch<Width> + pack * kPack;
  const bool within = pack * kPack < width;
#pragma unroll
  for (int r = 0; r < Rows; r += kAtOnce) {
    const bool here = within && row + r < there;
    const int at = here ? (row + r) * stride + pack * kPack : 0;
    beginCopy<sizeof(T) * kPack>(to + r * kPitch<Width>, from + at, here);
  }
}

/// Loads the 16 x 16 elements from `row` and `column` on as the left factor
/// (operand A) of mma.
template <int Width, typename T>
__device__ void loadLeft(std::uint32_t (&left)[4], const T *tile, int row,
                         int column) {
  const int lane = laneOfWarp();
  loadMatrices<false>(left, tile + (row + lane % 16) * kPitch<Width> + column +
                                lane / 16 * kPack);
}

/// Loads 16 x 16 elements as two right factors (operands B), with k along the
/// rows: right[0, 1] hold the first eight columns, and right[2, 3] the last
/// eight.
template <int Width, typename T>
__device__ void loadRight(std::uint32_t (&right)[4], const T *tile, int row,
                          int column) {
  const int lane = laneOfWarp();
  loadMatrices<true>(right, tile + (row + lane % 16) * kPitch<Width> + column +
                                lane / 16 * kPack);
}

/// Loads 16 x 16 elements as two right factors, with k along the columns:
/// right[0, 1] hold the first eight rows, and right[2, 3] the last eight.
template <int Width, typename T>
__device__ void loadTurned(std::uint32_t (&right)[4], const T *tile, int row,
                           int column) {
  const int lane = laneOfWarp();
  loadMatrices<false>(right,
                      tile + (row + lane / 16 * 8 + lane % 8) * kPitch<Width> +
                          column + lane / 8 % 2 * kPack);
}

/// Loads the left factors of dotRows() from rows of a tile.
template <int Width, typename T> struct TileRows {
  const T *tile;
  int row; ///< the first row

  __device__ void load(std::uint32_t (&left)[4], int s, int column) const {
    loadLeft<Width>(left, tile, row + s * kStrip, column);
  }
};
/// Holds a strip of a tile in registers, as the left factors of dotRows().
template <int Width> struct HeldStrip {
  std::uint32_t lefts[Width / 16][4];

  template <typename T> __device__ HeldStrip(const T *tile, int row) {
#pragma unroll
    for (int h = 0; h < Width; h += 16)
      loadLeft<Width>(lefts[h / 16], tile, row, h);
  }
  __device__ void load(std::uint32_t (&left)[4], int, int column) const {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      left[i] = lefts[column / 16][i];
  }
};

/// Computes the dot products of the rows of `lefts` with the rows of `right`.
template <int Width, int Strips, int Columns, typename T, typename Lefts>
__device__ void dotRows(CoreSums<Strips, Columns> &sums, const Lefts &lefts,
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
      lefts.load(rows[s], s, h);
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

/// Sets to -infinity the scores of keys that do not exist or that the causal
/// mask hides.
/// \tparam KeysAreRows whether keys, instead of queries, are rows of the tile
/// \param query, key the first query and key of the tile
template <bool KeysAreRows, int Strips, int Columns>
__device__ void hideUnseen(CoreSums<Strips, Columns> &scores,
                           const CausalMask &causal, int query, int key) {
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
            causal.of(query + (KeysAreRows ? column : row)))
          scores[s][n][e] = -INFINITY;
      }
}

/// Rounds two numbers to T and packs them into a word.
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

/// Holds CoreSums rounded to 16 bits. A word [s][n][half] packs columns 8n + 2t
/// and 8n + 2t + 1 of row g + 8 * half of strip s, with g and t of
/// tensor_core.cuh.
template <int Strips, int Columns>
using CorePairs = std::uint32_t[Strips][Columns / 8][2];

/// Returns one pair of CorePairs, or of CoreSums after rounding to T.
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

/// Adds weights * tile to the accumulators.
/// \param weights  CorePairs, or CoreSums that are rounded to T
template <int Width, int Columns, int Strips, typename Weights, typename T>
__device__ void addWeighted(CoreSums<Strips, Width> &sums,
                            const Weights &weights, const T *tile) {
#pragma unroll
  for (int k = 0; k < Columns; k += 16) {
    // Rounded accumulators already have the register layout of operand A.
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

/// Stores this warp's accumulators, times a factor, to the rows from `row` on;
/// the tensor has `there` rows from `to` on.
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

/// Returns whether the kernels on tensor cores support the shapes of an
/// attention: heads of at most kMostOnCores features in whole packs, a positive
/// scale, and no soft cap.
inline bool suitCores(const Heads &all) {
  return all.width % kPack == 0 && all.width <= kMostOnCores &&
         all.scale > 0.0 && !(all.softcap > 0.0);
}

/// Returns whether the kernels on tensor cores support an attention. These
/// kernels also require one 16-bit type, aligned tensors, no bias, and a
/// dropout rate of at most 31/32.
inline bool suitCores(const Heads &all, const Masks &masks,
                      std::initializer_list<Operand> tensors) {
  const ElementType type = tensors.begin()->type;
  if ((type != ElementType::f16 && type != ElementType::bf16) ||
      !suitCores(all) || all.table.data || masks.limit > kMostLimitOnCores)
    return false;
  for (const Operand &tensor : tensors)
    if (tensor.type != type ||
        reinterpret_cast<std::uintptr_t>(tensor.data) % sizeof(uint4) != 0)
      return false;
  return true;
}

/// Calls `use` with a null pointer to the C++ type of the 16-bit `type`.
template <typename Use> void withHalf(ElementType type, Use use) {
  if (type == ElementType::f16)
    use(static_cast<__half *>(nullptr));
  else
    use(static_cast<__nv_bfloat16 *>(nullptr));
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_CORE_TILES_CUH
