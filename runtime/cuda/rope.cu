//===- rope.cu - Rotary positions -----------------------------------------===//
//
// Angles are found in double, as the specification has them: in float those of
// late positions would be off by more than results may be. A block takes all
// heads of one token, so that an angle is found once for them.
//
//===----------------------------------------------------------------------===//

#include <cmath>

#include "runtime/cuda/families.h"
#include "runtime/cuda/rows.cuh"

namespace mtplan::runtime::cuda {

namespace {

constexpr unsigned kThreads = 128;
constexpr int kPairs = 128; ///< at once

struct Rotation {
  std::int64_t length, offset, width, headWidth, pairs;
  bool interleaved;
  double turn; ///< -1: back
};

/// \param frequencies  of pairs
template <typename R>
__global__ void rotate(Operand from, Result to, const double *frequencies,
                       Rotation all) {
  __shared__ R cosines[kPairs], sines[kPairs];
  const std::int64_t token = blockIdx.x, start = token * all.width;
  const double position =
      static_cast<double>(all.offset + token % all.length) * all.turn;
  const std::int64_t heads = all.width / all.headWidth;
  R x[kPack], y[kPack];
  for (std::int64_t some = 0; some < all.pairs; some += kPairs) {
    const std::int64_t pairs =
        all.pairs - some < kPairs ? all.pairs - some : std::int64_t{kPairs};
    __syncthreads(); // who reads those before has done so
    if (threadIdx.x < pairs) {
      const double angle = position * frequencies[some + threadIdx.x];
      cosines[threadIdx.x] = static_cast<R>(cos(angle));
      sines[threadIdx.x] = static_cast<R>(sin(angle));
    }
    __syncthreads();
    // A pack is of whole pairs, or of as many of either half.
    const std::int64_t ofPack = all.interleaved ? kPack / 2 : kPack;
    const std::int64_t packs = (pairs + ofPack - 1) / ofPack;
    for (std::int64_t i = threadIdx.x; i < heads * packs; i += kThreads) {
      const std::int64_t first = i % packs * ofPack;
      const int count =
          static_cast<int>(pairs - first < ofPack ? pairs - first : ofPack);
      const std::int64_t head = start + i / packs * all.headWidth;
      if (all.interleaved) {
        const std::int64_t at = head + 2 * (some + first);
        load(from, at, 2 * count, x);
        for (int p = 0; p < count; ++p) {
          const R c = cosines[first + p], s = sines[first + p];
          y[2 * p] = x[2 * p] * c - x[2 * p + 1] * s;
          y[2 * p + 1] = x[2 * p] * s + x[2 * p + 1] * c;
        }
        store(to, at, 2 * count, y);
        continue;
      }
      const std::int64_t at = head + some + first;
      load(from, at, count, x);
      load(from, at + all.pairs, count, y);
      for (int p = 0; p < count; ++p) {
        const R c = cosines[first + p], s = sines[first + p], was = x[p];
        x[p] = was * c - y[p] * s;
        y[p] = was * s + y[p] * c;
      }
      store(to, at, count, x);
      store(to, at + all.pairs, count, y);
    }
  }
  // What is not rotated.
  const std::int64_t rest = all.headWidth - 2 * all.pairs;
  const std::int64_t packs = (rest + kPack - 1) / kPack;
  for (std::int64_t i = threadIdx.x; i < heads * packs; i += kThreads) {
    const std::int64_t first = i % packs * kPack;
    const std::int64_t at =
        start + i / packs * all.headWidth + 2 * all.pairs + first;
    load(from, at, packAt(first, rest), x);
    store(to, at, packAt(first, rest), x);
  }
}

template <typename R> class Rope final : public Kernel {
public:
  Rope(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec) {
    const TensorView &view = spec.inputs[0];
    all.length = view.shape[1];
    all.offset = pieceOf(view, 1).offset;
    all.width = view.shape[2];
    all.headWidth = spec.integer("head_dim", 1);
    all.pairs = spec.integer("rotary_dim", 0) / 2;
    all.interleaved = spec.integer("interleaved", 0) != 0;
    all.turn = spec.integer("inverse", 0) != 0 ? -1.0 : 1.0;
    const double theta = spec.number("theta", 1e4);
    std::vector<double> powers;
    for (std::int64_t i = 0; i < all.pairs; ++i)
      powers.push_back(std::pow(theta, -static_cast<double>(i) /
                                           static_cast<double>(all.pairs)));
    frequencies = uploaded(*context, powers);
  }

  void run(const Invocation &call) override {
    launch(*context, {spec.inputs[0].shape[0] * all.length, 1, kThreads},
           rotate<R>, operandOf(spec, call, 0), resultOf(spec, call, 0),
           reinterpret_cast<const double *>(frequencies.get()), all);
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  Rotation all{};
  DeviceMemory frequencies;
};

} // namespace

MadeKernel makeRope(const KernelSpec &spec, const SharedContext &context) {
  return makeOf<Rope>(spec, context);
}

} // namespace mtplan::runtime::cuda
