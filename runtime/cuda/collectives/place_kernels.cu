//===- place_kernels.cu - Kernels over several ranks' buffers -------------===//

#include <algorithm>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "runtime/cuda/collectives/place_kernels.h"
#include "runtime/cuda/device/elements.cuh"
#include "runtime/cuda/device/launch.cuh"

namespace mtplan::runtime::cuda {
namespace {

template <typename Pointer> using Places = Several<Pointer, kMostPlaces>;

template <typename Pointer>
Places<Pointer> placesOf(std::span<const Pointer> all) {
  if (all.size() > kMostPlaces)
    throw DeviceError("a kernel can access the memory of at most " +
                      std::to_string(kMostPlaces) + " ranks, not " +
                      std::to_string(all.size()));
  Places<Pointer> places{};
  std::ranges::copy(all, places.items);
  return places;
}

/// Selects the accumulation type of elements of type T.
template <typename T>
using Wide = std::conditional_t<
    std::is_same_v<T, double>, double,
    std::conditional_t<std::is_same_v<T, std::int32_t>, std::uint32_t, float>>;

template <typename R> __device__ R combined(Reduction reduction, R so, R next) {
  if (reduction != Reduction::max)
    return so + next;
  if constexpr (std::is_same_v<R, std::uint32_t>)
    return static_cast<std::int32_t>(next) > static_cast<std::int32_t>(so)
               ? next
               : so;
  else
    return next > so || next != next ? next : so;
}

template <typename R> __device__ R divided(R sum, int places) {
  if constexpr (std::is_same_v<R, std::uint32_t>)
    return static_cast<R>(static_cast<std::int32_t>(sum) / places);
  else
    return sum / static_cast<R>(places);
}

template <typename T>
__global__ void reduceElements(Places<const void *> sources, int places,
                               Places<void *> outputs, int copies,
                               Reduction reduction, std::int64_t count,
                               std::int64_t inner, std::int64_t stride) {
  using R = Wide<T>;
  const std::int64_t i = threadOfGrid();
  if (i >= count)
    return;
  const std::int64_t from = i / inner * stride + i % inner;
  R so = widened<R>(static_cast<const T *>(sources[0])[from]);
  for (int place = 1; place < places; ++place)
    so = combined(reduction, so,
                  widened<R>(static_cast<const T *>(sources[place])[from]));
  if (reduction == Reduction::avg)
    so = divided(so, places);
  const T result = narrowed<T>(so);
  for (int copy = 0; copy < copies; ++copy)
    static_cast<T *>(outputs[copy])[i] = result;
}

template <typename Unit>
__global__ void gatherUnits(Places<const void *> sources, int places, Unit *out,
                            std::int64_t count, std::int64_t inner,
                            std::int64_t stride) {
  const std::int64_t i = threadOfGrid();
  if (i >= count)
    return;
  const std::int64_t piece = i / inner;
  const auto *source = static_cast<const Unit *>(sources[piece % places]);
  out[i] = source[piece / places * stride + i % inner];
}

template <typename Unit>
__global__ void exchangeUnits(const Unit *in, Unit *out, std::int64_t first,
                              std::int64_t second, std::int64_t inner) {
  const std::int64_t i = threadOfGrid();
  if (i >= first * second * inner)
    return;
  const std::int64_t piece = i / inner;
  out[i] = in[(piece % first * second + piece / first) * inner + i % inner];
}

/// Calls `use` with a null pointer to the widest type whose size in bytes
/// divides all numbers in `all`. The smallest size is 2 bytes.
template <typename Use>
void withUnit(std::initializer_list<std::uint64_t> all, Use use) {
  std::uint64_t bits = 0;
  for (const std::uint64_t one : all)
    bits |= one;
  if (bits % 16 == 0)
    return use(static_cast<uint4 *>(nullptr));
  if (bits % 8 == 0)
    return use(static_cast<uint2 *>(nullptr));
  if (bits % 4 == 0)
    return use(static_cast<std::uint32_t *>(nullptr));
  use(static_cast<std::uint16_t *>(nullptr));
}

std::uint64_t addressOf(const void *data) {
  return reinterpret_cast<std::uintptr_t>(data);
}

template <typename T>
void reduceAs(const Context &context, Reduction reduction,
              std::span<const void *const> sources,
              std::span<void *const> outputs, const PieceRows &rows) {
  const std::int64_t count = rows.rows * rows.inner;
  launch(context.stream().get(), gridOf(count), reduceElements<T>,
         placesOf<const void *>(sources), static_cast<int>(sources.size()),
         placesOf<void *>(outputs), static_cast<int>(outputs.size()), reduction,
         count, rows.inner, rows.stride);
}

} // namespace

void reducePlaces(const Context &context, Reduction reduction,
                  std::span<const void *const> sources,
                  std::span<void *const> outputs, const PieceRows &rows) {
  switch (rows.type) {
  case ElementType::f64:
    return reduceAs<double>(context, reduction, sources, outputs, rows);
  case ElementType::f32:
    return reduceAs<float>(context, reduction, sources, outputs, rows);
  case ElementType::f16:
    return reduceAs<__half>(context, reduction, sources, outputs, rows);
  case ElementType::bf16:
    return reduceAs<__nv_bfloat16>(context, reduction, sources, outputs, rows);
  case ElementType::i32:
    return reduceAs<std::int32_t>(context, reduction, sources, outputs, rows);
  }
}

void gatherPlaces(const Context &context, std::span<const void *const> sources,
                  void *out, const PieceRows &rows) {
  const std::int64_t width = bytesOf(rows.type);
  std::uint64_t addresses = addressOf(out);
  for (const void *source : sources)
    addresses |= addressOf(source);
  withUnit({addresses, static_cast<std::uint64_t>(rows.inner * width),
            static_cast<std::uint64_t>(rows.stride * width)},
           [&](auto *tag) {
             using Unit = std::remove_pointer_t<decltype(tag)>;
             constexpr std::int64_t kUnit = sizeof(Unit);
             const std::int64_t inner = rows.inner * width / kUnit;
             const auto places = static_cast<int>(sources.size());
             const std::int64_t count = rows.rows * places * inner;
             launch(context.stream().get(), gridOf(count), gatherUnits<Unit>,
                    placesOf<const void *>(sources), places,
                    static_cast<Unit *>(out), count, inner,
                    rows.stride * width / kUnit);
           });
}

void exchangeDimensions(const Context &context, ElementType type,
                        const void *in, void *out, std::int64_t first,
                        std::int64_t second, std::int64_t inner) {
  const std::int64_t bytes = inner * bytesOf(type);
  withUnit({addressOf(in), addressOf(out), static_cast<std::uint64_t>(bytes)},
           [&](auto *tag) {
             using Unit = std::remove_pointer_t<decltype(tag)>;
             const std::int64_t units =
                 bytes / static_cast<std::int64_t>(sizeof(Unit));
             launch(context.stream().get(), gridOf(first * second * units),
                    exchangeUnits<Unit>, static_cast<const Unit *>(in),
                    static_cast<Unit *>(out), first, second, units);
           });
}

} // namespace mtplan::runtime::cuda
