//===- sums.cpp - Sums over samples and over all --------------------------===//

#include "runtime/cpu/column_sums.h"
#include "runtime/cpu/simd.h"

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

/// Squares in double precision: what is added up may be a million of them.
template <typename R>
MTPLAN_INLINE double squaresAny(const R *from, std::int64_t count) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<double>(from[i]);
    sum += value * value;
  }
  return sum;
}
MTPLAN_CLONES double squares(const float *from, std::int64_t count) {
  return squaresAny(from, count);
}
MTPLAN_CLONES double squares(const double *from, std::int64_t count) {
  return squaresAny(from, count);
}

namespace {

/// `sum`: down to the trailing dimensions.
template <typename R> class Sum : public Kernel {
public:
  Sum(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
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
    sums.finish(0, spec.outputs[0].type, call.outputs[0]);
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const std::int64_t width, samples;
  ColumnSums<R> sums;
};

template <typename R> class SquareSum : public Kernel {
public:
  SquareSum(const KernelSpec &spec, SharedContext theContext)
      : context(std::move(theContext)), from(spec.inputs[0].type),
        to(spec.outputs[0].type), total(spec.inputs[0].elements()),
        counts(spec.integer("counts", 1) != 0) {
    context->reserve(static_cast<std::size_t>((total + kTask - 1) / kTask) *
                         sizeof(double),
                     kChunk * sizeof(R));
  }

  void run(const Invocation &call) override {
    if (!counts)
      return;
    auto *parts = context->shared<double>();
    context->forRange(
        total, kTask, [&](std::int64_t first, std::int64_t count, int thread) {
          double sum = 0.0;
          for (std::int64_t i = first; i < first + count; i += kChunk) {
            const std::int64_t piece = std::min(kChunk, first + count - i);
            sum += squares(widen(from, call.inputs[0], i, piece,
                                 context->ofThread<R>(thread)),
                           piece);
          }
          parts[first / kTask] = sum;
        });
    double sum = readElement(to, call.outputs[0], 0);
    for (std::int64_t i = 0; i < (total + kTask - 1) / kTask; ++i)
      sum += parts[i];
    writeElement(to, call.outputs[0], 0, sum);
  }

private:
  const SharedContext context;
  const ElementType from, to;
  const std::int64_t total;
  const bool counts;
};

} // namespace

MadeKernel makeSum(const KernelSpec &spec, const SharedContext &context) {
  return makeOf<Sum>(spec, context);
}

MadeKernel makeSquareSum(const KernelSpec &spec, const SharedContext &context) {
  if (spec.inputs[0].type == ElementType::f64)
    return std::make_unique<SquareSum<double>>(spec, context);
  return std::make_unique<SquareSum<float>>(spec, context);
}

} // namespace mtplan::runtime::cpu
