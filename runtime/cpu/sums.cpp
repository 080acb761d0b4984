//===- sums.cpp - Sums over samples and over all elements -----------------===//

#include "runtime/cpu/sums.h"

#include <array>
#include <type_traits>

#include "runtime/backend/followed.h"
#include "runtime/backend/long_sum.h"
#include "runtime/cpu/numbers.h"
#include "runtime/plan/kernel_settings.h"

namespace mtplan::runtime::cpu {

template <typename R>
MTPLAN_INLINE void addToAny(const R *from, std::int64_t count, R *to) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i)
    to[i] += from[i];
}
MTPLAN_CLONES void addTo(const float *from, std::int64_t count, float *to) {
  addToAny(from, count, to);
}
MTPLAN_CLONES void addTo(const double *from, std::int64_t count, double *to) {
  addToAny(from, count, to);
}

/// Each of this many SIMD lanes computes its own LongSum.
constexpr std::int64_t kLanes = 16;
template <typename R>
MTPLAN_INLINE void squaresAny(const R *from, std::int64_t count, double *sums,
                              double *lost) {
  for (std::int64_t i = 0; i + kLanes <= count; i += kLanes) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const auto value = static_cast<double>(from[i + lane]);
      const double square = value * value;
      const double next = sums[lane] + square, taken = next - sums[lane];
      lost[lane] += (sums[lane] - (next - taken)) + (square - taken);
      sums[lane] = next;
    }
  }
}
MTPLAN_CLONES void squares(const float *from, std::int64_t count, double *sums,
                           double *lost) {
  squaresAny(from, count, sums, lost);
}
namespace {

/// Sums over the leading dimensions. With `then`, the last result is an
/// accumulator: the kernel stores the first term, and adds later terms.
template <typename R> class Sum : public Kernel {
public:
  Sum(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        accumulates(spec.find(kThen)), firstTerm(firstTermOf(spec.settings)),
        width(spec.outputs[0].elements()),
        samples(spec.inputs[0].shape.size() > spec.outputs[0].shape.size()
                    ? spec.inputs[0].shape[0]
                    : 1),
        sums(*context, samples, spec.inputs[0].elements() / samples / width,
             width, 1) {
    context->reserve(static_cast<std::size_t>(sums.sharedRoom()) * sizeof(R),
                     static_cast<std::size_t>(sums.ownRoom()) * sizeof(R));
  }

  void run(const Invocation &call) override {
    const ElementType type = spec.inputs[0].type;
    sums.run([&](std::int64_t first, std::int64_t rows, R *sum, int thread) {
      R *buffer = context->ofThread<R>(thread);
      for (std::int64_t row = first; row < first + rows; ++row)
        for (std::int64_t h = 0; h < width; h += kChunk) {
          const std::int64_t piece = std::min(kChunk, width - h);
          addTo(widen(type, call.inputs[0], row * width + h, piece, buffer),
                piece, sum + h);
        }
    });
    const std::size_t last = spec.outputs.size() - 1;
    sums.finish(0, spec.outputs[last].type, call.outputs[last],
                accumulates && !firstTerm.isOf(call.microBatch, call.copy));
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const bool accumulates;
  const FirstTerm firstTerm;
  const std::int64_t width, samples;
  ColumnSums<R> sums;
};

/// Adds the sum of the squares to the result in LongSum precision. Squares of
/// floats are exact in double precision, and are summed in SIMD lanes. Squares
/// of doubles are rounded, so the rounding error of each square is added too.
template <typename R> class SquareSum : public Kernel {
public:
  SquareSum(const KernelSpec &spec, SharedContext theContext)
      : context(std::move(theContext)), from(spec.inputs[0].type),
        total(spec.inputs[0].elements()),
        counts(spec.integer("counts", 1) != 0) {
    context->reserve(static_cast<std::size_t>((total + kTask - 1) / kTask) *
                         sizeof(LongSum),
                     kChunk * sizeof(R));
  }

  void run(const Invocation &call) override {
    if (!counts)
      return;
    auto *parts = context->shared<LongSum>();
    context->forRange(
        total, kTask, [&](std::int64_t first, std::int64_t count, int thread) {
          LongSum sum;
          for (std::int64_t i = first; i < first + count; i += kChunk) {
            const std::int64_t piece = std::min(kChunk, first + count - i);
            addSquares(widen(from, call.inputs[0], i, piece,
                             context->ofThread<R>(thread)),
                       piece, sum);
          }
          parts[first / kTask] = sum;
        });
    auto *out = static_cast<double *>(call.outputs[0]);
    LongSum sum{out[0], out[1]};
    for (std::int64_t i = 0; i < (total + kTask - 1) / kTask; ++i)
      sum.add(parts[i]);
    out[0] = sum.sum;
    out[1] = sum.lost;
  }

private:
  static void addSquares(const R *values, std::int64_t count, LongSum &sum) {
    std::int64_t first = 0;
    if constexpr (std::is_same_v<R, float>) {
      std::array<double, kLanes> sums{}, lost{};
      squares(values, count, sums.data(), lost.data());
      for (std::size_t lane = 0; lane < sums.size(); ++lane)
        sum.add(LongSum{sums[lane], lost[lane]});
      first = count / kLanes * kLanes;
    }
    for (std::int64_t i = first; i < count; ++i)
      sum.addSquare(static_cast<double>(values[i]));
  }

  const SharedContext context;
  const ElementType from;
  const std::int64_t total;
  const bool counts;
};

} // namespace

MadeKernel makeSum(const KernelSpec &spec, const SharedContext &context) {
  return makeOf<Sum>(spec, context);
}

MadeKernel makeFollowedSum(const KernelSpec &spec,
                           const SharedContext &context) {
  return isOfOnePrecision(spec) ? makeSum(spec, context) : nullptr;
}

MadeKernel makeSquareSum(const KernelSpec &spec, const SharedContext &context) {
  if (spec.inputs[0].type == ElementType::f64)
    return std::make_unique<SquareSum<double>>(spec, context);
  return std::make_unique<SquareSum<float>>(spec, context);
}

} // namespace mtplan::runtime::cpu
