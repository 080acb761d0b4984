//===- rank.cuh - The state of a stand-alone rank ---------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_STANDALONE_RANK_CUH
#define MTPLAN_RUNTIME_CUDA_STANDALONE_RANK_CUH

#include <barrier>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nccl.h>

#include "runtime/backend/element.h"
#include "runtime/backend/step_numbers.h"
#include "runtime/backend/tensor_view.h"
#include "runtime/cuda/device/matrix_product.h"
#include "runtime/cuda/device/move.cuh"
#include "runtime/cuda/device/pointwise.cuh"
#include "runtime/cuda/device/sums.cuh"
#include "runtime/cuda/standalone/streams.cuh"

namespace mtplan::runtime::cuda {

inline void checkNccl(ncclResult_t status, const char *call) {
  if (status != ncclSuccess)
    throw DeviceError(std::string(call) + ": " + ncclGetErrorString(status));
}
#define MTPLAN_NCCL(call) checkNccl((call), #call)

enum Arena { kParameters, kOptimizer, kGradients, kActivations, kWorkspace };
inline constexpr int kArenas = 5;

/// Describes a region of an arena, with an entry per layer and a slot per
/// micro-batch in flight. Layer i uses entry first + step * i, modulo the
/// number of entries.
struct Buffer {
  ElementType type;
  Arena arena;
  std::int64_t offset, size; ///< bytes; first entry
  int entries = 1;
  std::int64_t entryStride = 0; ///< bytes
  int slots = 1;
  std::int64_t slotStride = 0; ///< bytes
  int first = 0, step = 1;

  /// Returns the buffer with an entry for each of `count` layers.
  constexpr Buffer perLayer(int count, std::int64_t stride) const {
    return {type, arena, offset, size, count, stride, slots, slotStride};
  }
  /// Returns the buffer with a slot for each of `count` micro-batches in
  /// flight.
  constexpr Buffer perMicroBatch(int count, std::int64_t stride) const {
    return {type, arena, offset, size, entries, entryStride, count, stride};
  }
  constexpr Buffer from(int entry) const { return at(entry, 1); }
  constexpr Buffer down(int entry) const { return at(entry, -1); }
  constexpr Buffer only(int entry) const { return at(entry, 0); }
  /// Returns a buffer in which layer i uses entry `entry` + `by` * i.
  constexpr Buffer at(int entry, int by) const {
    Buffer other = *this;
    other.first = entry;
    other.step = by;
    return other;
  }
  /// Returns the same bytes as elements of another type.
  constexpr Buffer as(ElementType other) const {
    Buffer one = *this;
    one.type = other;
    return one;
  }
};

struct UpdatedBuffers {
  Buffer gradient, weight, master, firstMoment, secondMoment;
  std::int64_t elements; ///< elements of one layer on this rank
  bool decays;           ///< weight decay applies
};

/// Returns the distance in elements between two buffers of the same arena and
/// type.
constexpr std::int64_t apart(const Buffer &from, const Buffer &to) {
  return (to.offset - from.offset) / bytesOf(from.type);
}

constexpr bool areEven(const Buffer &a, const Buffer &b, const Buffer &c) {
  return b.offset - a.offset == c.offset - b.offset;
}

/// Returns the number of 32-feature tiles of an attention kernel (its second
/// template argument). Kernels exist for heads of up to 64, 96, 128 and 256
/// features.
constexpr int headTiles(std::int64_t features) {
  return features <= 64 ? 2 : features <= 96 ? 3 : features <= 128 ? 4 : 8;
}

/// Is the number of doubles in a sum of squares. The reports follow this sum in
/// Rank::stepSums.
inline constexpr std::size_t kSquareSum =
    sizeof(DeviceLongSum) / sizeof(double);

struct Tensor {
  void *data = nullptr;
  ElementType type = ElementType::f32;
  Tensor as(ElementType other) const { return {data, other}; }
  operator Operand() const { return {data, type}; }
  operator Result() const { return {data, type}; }
};

/// Describes a channel between this rank and the rank with the same index in
/// another pipeline stage. Messages go in one direction only.
struct Line {
  ncclComm_t communicator = nullptr; ///< consists of these two ranks
  int other = 0;                     ///< the other rank, in `communicator`
  cudaStream_t stream = nullptr;     ///< for sends; null if this rank receives
  Scratch copies;                    ///< copies of the messages of one step
  std::size_t copied = 0;            ///< bytes used in `copies`
  cudaEvent_t ready = nullptr; ///< orders copies, sends and the step's end
};

/// Points to the TensorList of a kernel in device memory.
struct DeviceList {
  const void *items = nullptr;
  const Share *shares = nullptr;
  std::int64_t blocks = 0;
};

/// Describes an input, whose shard the host writes before every step.
struct Fed {
  std::string label;
  int microBatch;
  TensorView piece;
  std::int64_t limit; ///< integers are below `limit`; 0: no integers
  ElementType type;
  std::byte *to; ///< memory in Rank::inputs
};

/// Holds the state of a rank: coordinates in the mesh, arenas, streams,
/// communicators, and lookup tables of its kernels.
struct Rank {
  int rank = 0, ranks = 1;
  std::barrier<> *threads = nullptr; ///< null if each rank is a process
  std::vector<int> sizes, places;    ///< by axis: size, coordinate
  Streams streams;                   ///< the plan's streams
  ncclComm_t world = nullptr;
  std::vector<ncclComm_t> groups;
  std::vector<int> groupSizes;
  std::vector<Line> lines;

  std::byte *arenas[kArenas] = {};
  Staging inputs;
  std::vector<Fed> fed;
  /// `stepSums` is device memory: this rank's sum of squares (two doubles) and
  /// reports, then all ranks' sums of squares, then all ranks' reports.
  /// `hostSums` is pinned host memory: the sums and reports of all ranks.
  double *stepSums = nullptr, *hostSums = nullptr;
  /// `numbers` is in device memory, and `written` in pinned host memory.
  StepNumbers *numbers = nullptr, *written = nullptr;
  std::unique_ptr<MatrixProducts> products; ///< algorithms chosen so far
  std::map<std::string, void *> tables;
  std::map<std::string, DeviceList> lists;

  /// Returns this rank's coordinate on an axis of the mesh.
  int at(int axis) const { return places[static_cast<std::size_t>(axis)]; }
  /// Returns the stream on which all runs begin and end.
  cudaStream_t stream() const { return streams.lanes.front().stream; }
};

/// Waits until all ranks of this process have called this function.
///
/// A CUDA allocation may block until other GPUs of the process are idle, but
/// the collectives of these GPUs may wait for this rank. Therefore all ranks
/// and NCCL must have allocated their memory before the first rank begins a
/// step.
inline void meet(const Rank &rank) {
  if (rank.threads)
    rank.threads->arrive_and_wait();
}

/// Holds the context of a run of a program: a layer, a micro-batch and a
/// stream.
struct Run {
  Rank &rank;
  int layer = 0, microBatch = 0;
  int which = 0; ///< index of the stream

  Run on(int stream) const { return {rank, layer, microBatch, stream}; }
  Lane &lane() const {
    return rank.streams.lanes[static_cast<std::size_t>(which)];
  }
  cudaStream_t stream() const { return lane().stream; }
  void *scratch(std::size_t bytes) const {
    return lane().scratch.atLeast(bytes);
  }
  int at(int axis) const { return rank.at(axis); }
  /// Returns this rank's shard of a dimension of `whole` elements. `axes` are
  /// the mesh axes that shard the dimension, the major axis first.
  Span shard(std::int64_t whole, std::initializer_list<int> axes) const {
    std::int64_t place = 0, shards = 1;
    for (const int axis : axes) {
      const int size = rank.sizes[static_cast<std::size_t>(axis)];
      place = place * size + at(axis);
      shards *= size;
    }
    return {place * (whole / shards), whole};
  }

  void fork(std::initializer_list<int> others) const {
    rank.streams.fork(others);
  }
  void join(std::initializer_list<int> others) const {
    rank.streams.join(others);
  }
  cudaEvent_t done(int stream) const { return rank.streams.done(stream); }
  void wait(int stream, cudaEvent_t event) const {
    rank.streams.wait(stream, event);
  }

  /// Returns the tensor that a buffer has for this run's layer and micro-batch.
  Tensor operator[](const Buffer &buffer) const {
    const int entry = (buffer.first + buffer.step * layer) % buffer.entries;
    return {rank.arenas[buffer.arena] + buffer.offset +
                entry * buffer.entryStride +
                microBatch % buffer.slots * buffer.slotStride,
            buffer.type};
  }
};

inline std::int32_t *integers(const Tensor &tensor) {
  return static_cast<std::int32_t *>(tensor.data);
}

/// Returns a copy of `values` in device memory, which is never freed. The copy
/// is made immediately, and is not part of a captured step.
template <typename T>
void *uploaded(const Run &now, const std::vector<T> &values) {
  const std::size_t bytes = values.size() * sizeof(T);
  cudaStream_t aside = now.rank.streams.aside;
  void *there = nullptr;
  MTPLAN_CUDA(cudaMalloc(&there, bytes));
  MTPLAN_CUDA(cudaMemcpyAsync(there, values.data(), bytes,
                              cudaMemcpyHostToDevice, aside));
  MTPLAN_CUDA(cudaStreamSynchronize(aside));
  return there;
}

/// Returns a lookup table in device memory, which the first call makes.
template <typename T, typename Make>
const T *table(const Run &now, const std::string &name, const Make &make) {
  void *&there = now.rank.tables[name];
  if (!there)
    there = uploaded(now, make());
  return static_cast<const T *>(there);
}

/// Returns the arguments of a kernel over many tensors. The first call for a
/// layer uploads the tensors that `list` appends.
template <typename Item, typename List>
TensorList<Item> tensorList(const Run &now, const std::string &name,
                            const List &list) {
  const auto [found, isNew] =
      now.rank.lists.try_emplace(name + " " + std::to_string(now.layer));
  DeviceList &there = found->second;
  if (isNew) {
    std::vector<Item> items;
    list(items);
    std::vector<Share> shares;
    for (std::size_t i = 0; i < items.size(); ++i)
      for (std::int64_t p = 0; p < blocksFor(items[i].elements, kListPiece);
           ++p)
        shares.push_back(
            {static_cast<std::int32_t>(i), static_cast<std::int32_t>(p)});
    there.blocks = static_cast<std::int64_t>(shares.size());
    if (there.blocks > 0) {
      there.items = uploaded(now, items);
      there.shares = static_cast<const Share *>(uploaded(now, shares));
    }
  }
  return {static_cast<const Item *>(there.items), there.shares, there.blocks};
}

/// Squares the elements of the tensors that `list` appends to its second
/// argument, and adds the squares to this rank's sum of squares.
template <typename R>
void addSquares(Rank &rank, const char *name,
                void (*list)(Rank &, std::vector<Squared> &)) {
  const Run now{rank};
  const TensorList<Squared> all = tensorList<Squared>(
      now, name, [&](std::vector<Squared> &to) { list(rank, to); });
  squareSum<R>(now.stream(), all,
               reinterpret_cast<DeviceLongSum *>(rank.stepSums),
               now.scratch(squareSumScratch(all)));
}

inline const void *plus(const void *data, std::int64_t elements,
                        ElementType type) {
  return static_cast<const std::byte *>(data) + elements * bytesOf(type);
}
inline void *plus(void *data, std::int64_t elements, ElementType type) {
  return static_cast<std::byte *>(data) + elements * bytesOf(type);
}
inline Tensor plus(const Tensor &tensor, std::int64_t elements) {
  return {plus(tensor.data, elements, tensor.type), tensor.type};
}

inline std::size_t bytesOf(const Tensor &tensor, std::int64_t elements) {
  return static_cast<std::size_t>(elements * bytesOf(tensor.type));
}

/// Applies `body` to the operands' elements, and writes each result to `to`.
template <typename R, typename Body, typename... From>
void ofEach(const Run &now, const Body &body, std::int64_t elements,
            const Tensor &to, const From &...from) {
  each<R>(now.stream(), Several<Operand, sizeof...(From)>{{Operand(from)...}},
          Several<Result, 1>{{to}}, elements, body);
}

/// Applies a `body` with two results per element.
template <typename R, typename Body, typename... From>
void twoOfEach(const Run &now, const Body &body, std::int64_t elements,
               const Tensor &to, const Tensor &alsoTo, const From &...from) {
  each<R>(now.stream(), Several<Operand, sizeof...(From)>{{Operand(from)...}},
          Several<Result, 2>{{to, alsoTo}}, elements, body);
}

/// Adds `term` to `sum`, or stores `term` in `sum`.
/// \param adds  whether `sum` has earlier terms
template <typename R>
void accumulate(const Run &now, bool adds, std::int64_t elements,
                const Tensor &sum, const Tensor &term) {
  if (adds)
    ofEach<R>(now, EachSum(), elements, sum, term, sum);
  else
    ofEach<R>(now, EachSame(), elements, sum, term);
}

/// Converts the elements of `from` to the type of `to`, and returns `to`.
inline Tensor converted(const Run &now, const Tensor &from, const Tensor &to,
                        std::int64_t elements) {
  // A float does not represent every f64.
  if (from.type == ElementType::f64 || to.type == ElementType::f64)
    ofEach<double>(now, EachSame(), elements, to, from);
  else
    ofEach<float>(now, EachSame(), elements, to, from);
  return to;
}

/// Adds a number to report `which` of the step.
inline void report(const Run &now, int which, const Tensor &from) {
  const Tensor to{now.rank.stepSums + kSquareSum + which, ElementType::f64};
  ofEach<double>(now, EachSum(), 1, to, to, from);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_STANDALONE_RANK_CUH
