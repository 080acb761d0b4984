//===- rank.cuh - A rank of a program that stands alone ---------*- C++ -*-===//
//
// Its place, its memory, and what its instructions call beside kernels. What is
// sent is first copied: a line has a stream of its own, and keeps nobody
// waiting.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_STANDALONE_RANK_CUH
#define MTPLAN_RUNTIME_CUDA_STANDALONE_RANK_CUH

#include <cstdint>
#include <cstring>
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

/// A region of an arena: entries by layer, slots by micro-batch in flight.
struct Buffer {
  Arena arena;
  std::int64_t offset, size; ///< bytes; of one entry
  int entries = 1;
  std::int64_t entryStride = 0; ///< bytes
  int slots = 1;
  std::int64_t slotStride = 0; ///< bytes
};

/// An operand, or a result.
struct Tensor {
  void *data;
  ElementType type;
  operator Operand() const { return {data, type}; }
  operator Result() const { return {data, type}; }
};

/// What goes to the same place of another stage, or comes from it.
struct Line {
  ncclComm_t communicator = nullptr; ///< of the two ranks
  int other = 0;                     ///< in it
  cudaStream_t stream = nullptr;     ///< of sends, beside the plan's
  Scratch copies;                    ///< of all that a step sends
  std::size_t copied = 0;            ///< bytes of them, so far
  cudaEvent_t ready = nullptr;       ///< a copy is there
};

/// What one kernel does to many tensors, on the device.
struct Dealt {
  const void *items = nullptr;
  const Share *shares = nullptr;
  std::int64_t blocks = 0;
};

/// What a step trains on.
class Samples {
public:
  virtual ~Samples() = default;
  /// Steps come one after another, from 1.
  virtual void begin(std::int64_t step) = 0;
  /// Targets of the step that are tokens, of all ranks.
  virtual double count() = 0;
  /// All elements of an input of a micro-batch, of all ranks.
  /// \param limit  integers are below; 0: no integers
  virtual std::vector<double> values(const std::string &label, int microBatch,
                                     std::int64_t limit,
                                     std::int64_t elements) = 0;
};

struct Rank {
  int rank = 0, ranks = 1;
  std::vector<int> places; ///< by axis of the mesh
  Streams streams;         ///< of the plan
  ncclComm_t world = nullptr;
  std::vector<ncclComm_t> groups;
  std::vector<int> groupSizes;
  std::vector<Line> lines;

  std::byte *arenas[kArenas] = {};
  Staging inputs;
  /// On the device: this rank's sum of squares and reports, then all ranks'
  /// sums, then their reports. And where the host hears of all ranks'.
  double *told = nullptr, *heard = nullptr;
  /// On the device, and where the host writes them.
  StepNumbers *numbers = nullptr, *written = nullptr;
  std::unique_ptr<MatrixProducts> products; ///< of the rank's device
  std::map<std::string, void *> tables;
  std::map<std::string, Dealt> dealt;
  Samples *samples = nullptr; ///< of the step
  double lossScale = 1.0;

  /// Where the plan's runs begin and end.
  cudaStream_t stream() const { return streams.lanes.front().stream; }
};

/// One run of a program: of a layer, for a micro-batch.
struct Run {
  Rank &rank;
  int layer = 0, microBatch = 0;
  int which = 0; ///< of the plan's streams, for what is queued by it

  /// The same run, on another stream.
  Run on(int stream) const { return {rank, layer, microBatch, stream}; }
  Lane &lane() const {
    return rank.streams.lanes[static_cast<std::size_t>(which)];
  }
  cudaStream_t stream() const { return lane().stream; }
  void *scratch(std::size_t bytes) const {
    return lane().scratch.atLeast(bytes);
  }
  int at(int axis) const { return rank.places[static_cast<std::size_t>(axis)]; }

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

  void *data(const Buffer &buffer, int entry) const {
    return rank.arenas[buffer.arena] + buffer.offset +
           entry % buffer.entries * buffer.entryStride +
           microBatch % buffer.slots * buffer.slotStride;
  }
  Tensor f64(const Buffer &buffer, int entry = 0) const {
    return {data(buffer, entry), ElementType::f64};
  }
  Tensor f32(const Buffer &buffer, int entry = 0) const {
    return {data(buffer, entry), ElementType::f32};
  }
  Tensor f16(const Buffer &buffer, int entry = 0) const {
    return {data(buffer, entry), ElementType::f16};
  }
  Tensor bf16(const Buffer &buffer, int entry = 0) const {
    return {data(buffer, entry), ElementType::bf16};
  }
  Tensor i32(const Buffer &buffer, int entry = 0) const {
    return {data(buffer, entry), ElementType::i32};
  }
  std::int32_t *integers(const Buffer &buffer, int entry = 0) const {
    return static_cast<std::int32_t *>(data(buffer, entry));
  }
};

/// A copy on the device, for good.
template <typename T>
void *uploaded(const Run &now, const std::vector<T> &values) {
  const std::size_t bytes = values.size() * sizeof(T);
  void *there = nullptr;
  MTPLAN_CUDA(cudaMalloc(&there, bytes));
  MTPLAN_CUDA(cudaMemcpyAsync(there, values.data(), bytes,
                              cudaMemcpyHostToDevice, now.stream()));
  MTPLAN_CUDA(cudaStreamSynchronize(now.stream()));
  return there;
}

/// What a kernel looks up, put onto the device when it is first asked for.
template <typename T, typename Make>
const T *table(const Run &now, const std::string &name, const Make &make) {
  void *&there = now.rank.tables[name];
  if (!there)
    there = uploaded(now, make());
  return static_cast<const T *>(there);
}

/// Tensors for one kernel, which `list` adds when it is first asked.
template <typename Item, typename List>
Deal<Item> dealt(const Run &now, const std::string &name, const List &list) {
  const auto [found, isNew] =
      now.rank.dealt.try_emplace(name + " " + std::to_string(now.layer));
  Dealt &there = found->second;
  if (isNew) {
    std::vector<Item> items;
    list(items);
    std::vector<Share> shares;
    for (std::size_t i = 0; i < items.size(); ++i)
      for (std::int64_t p = 0; p < blocksFor(items[i].elements, kDealt); ++p)
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

/// Adds the squares of what `list` lists to the rank's sum.
template <typename R>
void addSquares(Rank &rank, const char *name,
                void (*list)(Rank &, std::vector<Squared> &)) {
  const Run now{rank};
  const Deal<Squared> all = dealt<Squared>(
      now, name, [&](std::vector<Squared> &to) { list(rank, to); });
  squareSum<R>(now.stream(), all, reinterpret_cast<DeviceLongSum *>(rank.told),
               now.scratch(squareSumScratch(all)));
}

/// c = epilogue(a b + bias + before), as the shape has it; algorithms are
/// chosen when a shape is first met.
/// \param before  null: c itself
inline void multiply(const Run &now, const MatrixShape &shape, const void *a,
                     const void *b, const void *bias, void *c,
                     const void *before = nullptr, const void *kept = nullptr) {
  const MatrixProduct &product = now.rank.products->of(shape);
  product.run(now.stream(), {a, b, bias, c, before, kept},
              now.lane().workspace.atLeast(product.workspaceBytes()));
}

inline const void *plus(const void *data, std::int64_t elements,
                        ElementType type) {
  return static_cast<const std::byte *>(data) + elements * bytesOf(type);
}
inline void *plus(void *data, std::int64_t elements, ElementType type) {
  return static_cast<std::byte *>(data) + elements * bytesOf(type);
}

inline std::size_t bytesOf(const Tensor &tensor, std::int64_t elements) {
  return static_cast<std::size_t>(elements * bytesOf(tensor.type));
}

/// What `body` makes of each element of the operands.
template <typename R, typename Body, typename... From>
void ofEach(const Run &now, const Body &body, std::int64_t elements,
            const Tensor &to, const From &...from) {
  each<R>(now.stream(), Several<Operand, sizeof...(From)>{{Operand(from)...}},
          Several<Result, 1>{{to}}, elements, body);
}

/// The same, if it makes two.
template <typename R, typename Body, typename... From>
void twoOfEach(const Run &now, const Body &body, std::int64_t elements,
               const Tensor &to, const Tensor &alsoTo, const From &...from) {
  each<R>(now.stream(), Several<Operand, sizeof...(From)>{{Operand(from)...}},
          Several<Result, 2>{{to, alsoTo}}, elements, body);
}

/// Of another type. \return `to`
inline Tensor converted(const Run &now, const Tensor &from, const Tensor &to,
                        std::int64_t elements) {
  // Through float f64 would not come as it went.
  if (from.type == ElementType::f64 || to.type == ElementType::f64)
    ofEach<double>(now, EachSame(), elements, to, from);
  else
    ofEach<float>(now, EachSame(), elements, to, from);
  return to;
}

/// c = a b (+ c, as the shape has it), and the sum of one of the two over k, to
/// `gradient` likewise: beside the product, if the device has such a one.
/// \param summed  that operand, [samples, rows, columns]
template <typename R>
void multiplyAndSum(const Run &now, MatrixShape shape, const void *a,
                    const void *b, void *c, const Tensor &summed,
                    const Tensor &gradient, const ColumnSizes &sizes) {
  const MatrixProduct *both = now.rank.products->find(shape);
  if (!both) {
    shape.sums = OperandSum::none;
    multiply(now, shape, a, b, nullptr, c);
    sum<R>(now.stream(), summed, gradient, sizes,
           now.scratch(columnScratch<R>(sizes, 1)), shape.adds);
    return;
  }
  // The product stores a sum, and never adds to it.
  Tensor stored = gradient;
  if (shape.adds)
    stored.data = now.scratch(bytesOf(gradient, sizes.columns));
  both->run(now.stream(), {a, b, nullptr, c, nullptr, nullptr, stored.data},
            now.lane().workspace.atLeast(both->workspaceBytes()));
  if (shape.adds)
    ofEach<R>(now, EachSum(), sizes.columns, gradient, stored, gradient);
}

inline ncclDataType_t ncclTypeOf(ElementType type) {
  return type == ElementType::f64    ? ncclFloat64
         : type == ElementType::f32  ? ncclFloat32
         : type == ElementType::f16  ? ncclFloat16
         : type == ElementType::bf16 ? ncclBfloat16
                                     : ncclInt32;
}

/// [inner][outer][width] to [outer][inner][width]
inline void swapRows(const Run &now, const Tensor &from, const Tensor &to,
                     std::int64_t outer, std::int64_t inner,
                     std::int64_t width) {
  const Strides source{2, {outer, inner}, {width, outer * width}, 0, width};
  // Through float neither f64 nor i32 would come as it went.
  if (to.type == ElementType::f64 || to.type == ElementType::i32)
    take<double>(now.stream(), from, to, outer * inner, source);
  else
    take<float>(now.stream(), from, to, outer * inner, source);
}

inline void allReduce(const Run &now, int group, const Tensor &from,
                      const Tensor &to, std::int64_t elements,
                      ncclRedOp_t how) {
  MTPLAN_NCCL(ncclAllReduce(
      from.data, to.data, static_cast<std::size_t>(elements),
      ncclTypeOf(to.type), how,
      now.rank.groups[static_cast<std::size_t>(group)], now.stream()));
}

/// [outer][inner] of each rank to [outer][ranks][inner]
inline void allGather(const Run &now, int group, const Tensor &from,
                      const Tensor &to, std::int64_t outer,
                      std::int64_t inner) {
  const auto g = static_cast<std::size_t>(group);
  const std::int64_t ranks = now.rank.groupSizes[g];
  Tensor all = to;
  if (outer > 1)
    all.data = now.lane().exchange.atLeast(bytesOf(to, ranks * outer * inner));
  MTPLAN_NCCL(ncclAllGather(
      from.data, all.data, static_cast<std::size_t>(outer * inner),
      ncclTypeOf(to.type), now.rank.groups[g], now.stream()));
  if (outer > 1)
    swapRows(now, all, to, outer, ranks, inner);
}

/// [outer][ranks][inner] of each rank to [outer][inner], reduced
inline void reduceScatter(const Run &now, int group, const Tensor &from,
                          const Tensor &to, std::int64_t outer,
                          std::int64_t inner, ncclRedOp_t how) {
  const auto g = static_cast<std::size_t>(group);
  const std::int64_t ranks = now.rank.groupSizes[g];
  Tensor all = from;
  if (outer > 1) {
    all.data =
        now.lane().exchange.atLeast(bytesOf(from, ranks * outer * inner));
    swapRows(now, from, all, ranks, outer, inner);
  }
  MTPLAN_NCCL(ncclReduceScatter(
      all.data, to.data, static_cast<std::size_t>(outer * inner),
      ncclTypeOf(to.type), how, now.rank.groups[g], now.stream()));
}

/// [rows][ranks][width], of which every rank gets its part, to
/// [newRows][ranks][newWidth], in which every rank's part lies side by side
inline void allToAll(const Run &now, int group, const Tensor &from,
                     const Tensor &to, std::int64_t rows, std::int64_t width,
                     std::int64_t newRows, std::int64_t newWidth) {
  const auto g = static_cast<std::size_t>(group);
  const std::int64_t ranks = now.rank.groupSizes[g], part = rows * width;
  const std::size_t bytes = roundedUp(bytesOf(from, ranks * part));
  auto *room = static_cast<std::byte *>(now.lane().exchange.atLeast(2 * bytes));
  const Tensor packed{room, from.type}, received{room + bytes, from.type};
  swapRows(now, from, packed, ranks, rows, width);
  MTPLAN_NCCL(ncclGroupStart());
  for (int other = 0; other < static_cast<int>(ranks); ++other) {
    const auto count = static_cast<std::size_t>(part);
    MTPLAN_NCCL(ncclSend(plus(packed.data, other * part, from.type), count,
                         ncclTypeOf(from.type), other, now.rank.groups[g],
                         now.stream()));
    MTPLAN_NCCL(ncclRecv(plus(received.data, other * part, from.type), count,
                         ncclTypeOf(from.type), other, now.rank.groups[g],
                         now.stream()));
  }
  MTPLAN_NCCL(ncclGroupEnd());
  swapRows(now, received, to, newRows, ranks, newWidth);
}

inline void send(const Run &now, int line, const Tensor &from,
                 std::int64_t elements) {
  Line &own = now.rank.lines[static_cast<std::size_t>(line)];
  const std::size_t bytes = bytesOf(from, elements);
  std::byte *copy = own.copies.data + own.copied;
  own.copied += roundedUp(bytes);
  MTPLAN_CUDA(cudaMemcpyAsync(copy, from.data, bytes, cudaMemcpyDeviceToDevice,
                              now.stream()));
  MTPLAN_CUDA(cudaEventRecord(own.ready, now.stream()));
  MTPLAN_CUDA(cudaStreamWaitEvent(own.stream, own.ready, 0));
  MTPLAN_NCCL(ncclSend(copy, static_cast<std::size_t>(elements),
                       ncclTypeOf(from.type), own.other, own.communicator,
                       own.stream));
}

inline void receive(const Run &now, int line, const Tensor &to,
                    std::int64_t elements) {
  const Line &own = now.rank.lines[static_cast<std::size_t>(line)];
  MTPLAN_NCCL(ncclRecv(to.data, static_cast<std::size_t>(elements),
                       ncclTypeOf(to.type), own.other, own.communicator,
                       now.stream()));
}

/// Adds a number to what the step reports.
inline void report(const Run &now, int which, const Tensor &from) {
  const Tensor to{now.rank.told + 2 + which, ElementType::f64};
  ofEach<double>(now, EachSum(), 1, to, to, from);
}

/// From the step's inputs in the host's memory.
inline void upload(const Run &now, const Tensor &to,
                   const std::vector<double> &values) {
  const std::size_t bytes =
      bytesOf(to, static_cast<std::int64_t>(values.size()));
  std::byte *const from = now.rank.inputs.take(bytes);
  for (std::size_t i = 0; i < values.size(); ++i)
    writeElement(to.type, from, static_cast<std::int64_t>(i), values[i]);
  MTPLAN_CUDA(cudaMemcpyAsync(to.data, from, bytes, cudaMemcpyHostToDevice,
                              now.stream()));
}

/// An input of the step: this rank's piece of it.
inline void feed(const Run &now, const char *label, const Tensor &to,
                 const TensorView &piece, std::int64_t limit) {
  Samples &samples = *now.rank.samples;
  if (std::strcmp(label, "count") == 0)
    // Losses are sums over this number: a part of it is a multiple of them.
    return upload(
        now, to,
        std::vector<double>(static_cast<std::size_t>(piece.elements()),
                            samples.count() / now.rank.lossScale));
  std::int64_t elements = 1;
  for (const Span &span : piece.pieces)
    elements *= span.global;
  const std::vector<double> all =
      samples.values(label, now.microBatch, limit, elements);
  std::vector<double> mine(static_cast<std::size_t>(piece.elements()));
  std::vector<std::int64_t> place(piece.shape.size(), 0);
  for (double &value : mine) {
    std::int64_t global = 0;
    for (std::size_t d = 0; d < place.size(); ++d)
      global =
          global * piece.pieces[d].global + piece.pieces[d].offset + place[d];
    value = all[static_cast<std::size_t>(global)];
    for (std::size_t d = place.size(); d-- > 0;) {
      if (++place[d] < piece.shape[d])
        break;
      place[d] = 0;
    }
  }
  upload(now, to, mine);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_STANDALONE_RANK_CUH
