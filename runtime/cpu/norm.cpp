//===- norm.cpp - Layer and RMS norms -------------------------------------===//

#include "runtime/cpu/numbers.h"
#include "runtime/cpu/sums.h"

namespace mtplan::runtime::cpu {

template <typename R> struct NormRow {
  const R *x, *gamma, *beta, *above; ///< beta is unused for an RMS norm
  R *result, *gammaSum, *betaSum;
  std::int64_t width;
  R epsilon;
  bool centred;
};

/// Computes a row's mean, which is 0 for an RMS norm, and the scale that
/// normalizes the row, 1 / sqrt(mean of (x - mean)^2 + epsilon).
template <typename R>
MTPLAN_INLINE void statistics(const NormRow<R> &row, R &mean, R &scale) {
  const R *x = row.x;
  R sum = 0;
  if (row.centred) {
#pragma omp simd reduction(+ : sum)
    for (std::int64_t h = 0; h < row.width; ++h)
      sum += x[h];
  }
  const R middle = sum / static_cast<R>(row.width);
  R squares = 0;
#pragma omp simd reduction(+ : squares)
  for (std::int64_t h = 0; h < row.width; ++h)
    squares += (x[h] - middle) * (x[h] - middle);
  mean = middle;
  scale = R(1) / std::sqrt(squares / static_cast<R>(row.width) + row.epsilon);
}

template <typename R> MTPLAN_INLINE void normaliseAny(const NormRow<R> &row) {
  R mean, scale;
  statistics(row, mean, scale);
  const R *x = row.x, *gamma = row.gamma, *beta = row.beta;
  R *result = row.result;
#pragma omp simd
  for (std::int64_t h = 0; h < row.width; ++h)
    result[h] = (x[h] - mean) * scale * gamma[h];
  if (!beta)
    return;
#pragma omp simd
  for (std::int64_t h = 0; h < row.width; ++h)
    result[h] += beta[h];
}
MTPLAN_CLONES void normalise(const NormRow<float> &row) { normaliseAny(row); }
MTPLAN_CLONES void normalise(const NormRow<double> &row) { normaliseAny(row); }

/// Computes dx = scale * (d - mean(d) - n * mean(d * n)), where n is the
/// normalized row and d = above * gamma. An RMS norm omits mean(d). Adds the
/// row's terms to the gradients of gamma and beta.
template <typename R>
MTPLAN_INLINE void normaliseGradAny(const NormRow<R> &row) {
  R mean, scale;
  statistics(row, mean, scale);
  const R *x = row.x, *gamma = row.gamma, *above = row.above;
  R *result = row.result, *gammaSum = row.gammaSum, *betaSum = row.betaSum;
  R sum = 0, projection = 0;
#pragma omp simd reduction(+ : sum, projection)
  for (std::int64_t h = 0; h < row.width; ++h) {
    const R normal = (x[h] - mean) * scale, scaled = above[h] * gamma[h];
    sum += scaled;
    projection += scaled * normal;
    gammaSum[h] += above[h] * normal;
  }
  const auto width = static_cast<R>(row.width);
  const R middle = row.centred ? sum / width : R(0);
  const R slope = projection / width;
#pragma omp simd
  for (std::int64_t h = 0; h < row.width; ++h)
    result[h] =
        scale * (above[h] * gamma[h] - middle - (x[h] - mean) * scale * slope);
  if (betaSum) {
#pragma omp simd
    for (std::int64_t h = 0; h < row.width; ++h)
      betaSum[h] += above[h];
  }
}
MTPLAN_CLONES void normaliseGrad(const NormRow<float> &row) {
  normaliseGradAny(row);
}
MTPLAN_CLONES void normaliseGrad(const NormRow<double> &row) {
  normaliseGradAny(row);
}

namespace {

constexpr double kEpsilon = 1e-5; // the default in ir/norm_ops.td

template <typename R> class Norm : public Kernel {
public:
  Norm(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        width(spec.inputs[1].shape[0]),
        rows(spec.inputs[0].elements() / width) {
    context->reserve(0, static_cast<std::size_t>(4 * width) * sizeof(R));
  }

  void run(const Invocation &call) override {
    const bool centred = spec.inputs.size() == 3;
    const ElementType from = spec.inputs[0].type, to = spec.outputs[0].type;
    context->forRange(
        rows, 16, [&](std::int64_t first, std::int64_t count, int thread) {
          R *own = context->ofThread<R>(thread);
          NormRow<R> row{};
          row.width = width;
          row.centred = centred;
          row.epsilon = static_cast<R>(spec.number("epsilon", kEpsilon));
          row.gamma = widen(spec.inputs[1].type, call.inputs[1], 0, width, own);
          if (centred)
            row.beta = widen(spec.inputs[2].type, call.inputs[2], 0, width,
                             own + width);
          for (std::int64_t r = first; r < first + count; ++r) {
            row.x =
                widen(from, call.inputs[0], r * width, width, own + 2 * width);
            row.result =
                target(to, call.outputs[0], r * width, own + 3 * width);
            normalise(row);
            narrow(to, call.outputs[0], r * width, width, row.result);
          }
        });
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const std::int64_t width, rows;
};

template <typename R> class NormGrad : public Kernel {
public:
  NormGrad(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        width(spec.inputs[1].shape[0]),
        samples(spec.inputs[0].shape.size() < 2 ? 1 : spec.inputs[0].shape[0]),
        centred(spec.outputs.size() == 3),
        sums(*context, samples, spec.inputs[0].elements() / samples / width,
             width, centred ? 2 : 1) {
    context->reserve(
        static_cast<std::size_t>(sums.sharedRoom()) * sizeof(R),
        static_cast<std::size_t>(std::max(sums.ownRoom(), 4 * width)) *
            sizeof(R));
  }

  void run(const Invocation &call) override {
    const ElementType from = spec.inputs[0].type, to = spec.outputs[0].type;
    sums.run([&](std::int64_t first, std::int64_t count, R *sum, int thread) {
      R *own = context->ofThread<R>(thread);
      NormRow<R> row{};
      row.width = width;
      row.centred = centred;
      row.epsilon = static_cast<R>(spec.number("epsilon", kEpsilon));
      row.gamma = widen(spec.inputs[1].type, call.inputs[1], 0, width, own);
      row.gammaSum = sum;
      row.betaSum = centred ? sum + width : nullptr;
      for (std::int64_t r = first; r < first + count; ++r) {
        row.x = widen(from, call.inputs[0], r * width, width, own + width);
        row.above = widen(spec.inputs[2].type, call.inputs[2], r * width, width,
                          own + 2 * width);
        row.result = target(to, call.outputs[0], r * width, own + 3 * width);
        normaliseGrad(row);
        narrow(to, call.outputs[0], r * width, width, row.result);
      }
    });
    for (std::size_t i = 1; i < spec.outputs.size(); ++i)
      sums.finish(static_cast<std::int64_t>(i) - 1, spec.outputs[i].type,
                  call.outputs[i]);
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const std::int64_t width, samples;
  const bool centred;
  ColumnSums<R> sums;
};

} // namespace

MadeKernel makeNorm(const KernelSpec &spec, const SharedContext &context) {
  if (spec.kernel.ends_with("_grad"))
    return makeOf<NormGrad>(spec, context);
  return makeOf<Norm>(spec, context);
}

} // namespace mtplan::runtime::cpu
