//===- norm.cu - Layer and RMS norms --------------------------------------===//
//
// A block for each row. The row is read again for each of its sums: after the
// first time it is in the nearest cache.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/block_sum.cuh"
#include "runtime/cuda/column_sums.cuh"
#include "runtime/cuda/families.h"
#include "runtime/cuda/rows.cuh"

namespace mtplan::runtime::cuda {

namespace {

constexpr double kEpsilon = 1e-5; // as in ir/norm_ops.td
constexpr unsigned kThreads = 256;

/// Mean (0 if not centred) and reciprocal of the standard deviation of a row.
template <typename R> struct Statistics { R mean, scale; };

template <typename R>
__device__ Statistics<R> statisticsOf(const Operand &from, std::int64_t start,
                                      std::int64_t width, R epsilon,
                                      bool centred) {
  R x[kPack];
  R mean = R(0);
  if (centred) {
    R sum = R(0);
    packsOfRow(width, [&](std::int64_t first, int count) {
      load(from, start + first, count, x);
      for (int i = 0; i < count; ++i)
        sum += x[i];
    });
    mean = sumOverBlock(sum) / static_cast<R>(width);
  }
  R squares = R(0);
  packsOfRow(width, [&](std::int64_t first, int count) {
    load(from, start + first, count, x);
    for (int i = 0; i < count; ++i)
      squares += (x[i] - mean) * (x[i] - mean);
  });
  squares = sumOverBlock(squares);
  return {mean, R(1) / sqrt(squares / static_cast<R>(width) + epsilon)};
}

/// \param beta  without data if there is none: then the norm is not centred
template <typename R>
__global__ void normalise(Operand from, Operand gamma, Operand beta, Result to,
                          std::int64_t width, R epsilon) {
  const std::int64_t start = std::int64_t{blockIdx.x} * width;
  const bool centred = beta.data != nullptr;
  const Statistics<R> row = statisticsOf(from, start, width, epsilon, centred);
  R x[kPack], scale[kPack], shift[kPack];
  packsOfRow(width, [&](std::int64_t first, int count) {
    load(from, start + first, count, x);
    load(gamma, first, count, scale);
    for (int i = 0; i < kPack; ++i)
      x[i] = (x[i] - row.mean) * row.scale * scale[i];
    if (centred) {
      load(beta, first, count, shift);
      for (int i = 0; i < kPack; ++i)
        x[i] += shift[i];
    }
    store(to, start + first, count, x);
  });
}

/// With n the normalised row and d = above * gamma:
/// dx = scale * (d - mean(d) - n * mean(d * n)), mean(d) only if centred.
/// What the sums over rows need is kept.
template <typename R>
__global__ void normaliseGrad(Operand from, Operand gamma, Operand above,
                              Result to, Statistics<R> *kept,
                              std::int64_t width, R epsilon, bool centred) {
  const std::int64_t start = std::int64_t{blockIdx.x} * width;
  const Statistics<R> row = statisticsOf(from, start, width, epsilon, centred);
  if (threadIdx.x == 0)
    kept[blockIdx.x] = row;
  R x[kPack], d[kPack], scale[kPack];
  auto scaled = [&](std::int64_t first, int count) {
    load(from, start + first, count, x);
    load(above, start + first, count, d);
    load(gamma, first, count, scale);
    for (int i = 0; i < kPack; ++i) {
      x[i] = (x[i] - row.mean) * row.scale;
      d[i] *= scale[i];
    }
  };
  R sum = R(0), projection = R(0);
  packsOfRow(width, [&](std::int64_t first, int count) {
    scaled(first, count);
    for (int i = 0; i < count; ++i) {
      sum += d[i];
      projection += d[i] * x[i];
    }
  });
  const R slope = sumOverBlock(projection) / static_cast<R>(width);
  const R middle = centred ? sumOverBlock(sum) / static_cast<R>(width) : R(0);
  packsOfRow(width, [&](std::int64_t first, int count) {
    scaled(first, count);
    for (int i = 0; i < kPack; ++i)
      x[i] = row.scale * (d[i] - middle - x[i] * slope);
    store(to, start + first, count, x);
  });
}

/// What one element adds to the gradients of gamma and beta.
template <typename R> struct NormTerms {
  Operand from, above;
  const Statistics<R> *rows;
  std::int64_t width;

  template <int Sums>
  __device__ void operator()(std::int64_t row, std::int64_t column,
                             Several<R, Sums> &sums) const {
    const R d = loadOne<R>(above, row * width + column);
    const R x = loadOne<R>(from, row * width + column);
    sums[0] += d * ((x - rows[row].mean) * rows[row].scale);
    if constexpr (Sums == 2)
      sums[1] += d;
  }
};

template <typename R> class Norm final : public Kernel {
public:
  Norm(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        width(spec.inputs[1].shape[0]),
        rows(spec.inputs[0].elements() / width) {}

  void run(const Invocation &call) override {
    auto operand = [&](std::size_t i) -> Operand {
      return i < spec.inputs.size()
                 ? Operand{call.inputs[i], spec.inputs[i].type}
                 : Operand{nullptr, ElementType::f32};
    };
    launch(*context, {rows, 1, kThreads}, normalise<R>, operand(0), operand(1),
           operand(2), Result{call.outputs[0], spec.outputs[0].type}, width,
           static_cast<R>(spec.number("epsilon", kEpsilon)));
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const std::int64_t width, rows;
};

template <typename R> class NormGrad final : public Kernel {
public:
  NormGrad(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        width(spec.inputs[1].shape[0]), centred(spec.outputs.size() == 3) {
    const std::vector<std::int64_t> &shape = spec.inputs[0].shape;
    sizes.samples = shape.size() < 2 ? 1 : shape[0];
    sizes.rows = spec.inputs[0].elements() / sizes.samples / width;
    sizes.columns = width;
    context->reserve(keptBytes() + columnScratch<R>(sizes, centred ? 2 : 1));
  }

  void run(const Invocation &call) override {
    const Operand from{call.inputs[0], spec.inputs[0].type},
        gamma{call.inputs[1], spec.inputs[1].type},
        above{call.inputs[2], spec.inputs[2].type};
    auto result = [&](std::size_t i) {
      return Result{call.outputs[i], spec.outputs[i].type};
    };
    auto *kept = context->shared<Statistics<R>>();
    auto *parts =
        reinterpret_cast<R *>(context->shared<std::byte>() + keptBytes());
    launch(*context, {sizes.samples * sizes.rows, 1, kThreads},
           normaliseGrad<R>, from, gamma, above, result(0), kept, width,
           static_cast<R>(spec.number("epsilon", kEpsilon)), centred);
    const NormTerms<R> terms{from, above, kept, width};
    if (centred)
      sumColumns<R, 2>(*context, sizes, parts, {{result(1), result(2)}}, terms);
    else
      sumColumns<R, 1>(*context, sizes, parts, {{result(1)}}, terms);
  }

private:
  std::size_t keptBytes() const {
    const auto rows = static_cast<std::size_t>(sizes.samples * sizes.rows);
    constexpr std::size_t kUnit = 256;
    return (rows * sizeof(Statistics<R>) + kUnit - 1) / kUnit * kUnit;
  }

  const SharedContext context;
  const KernelSpec spec;
  const std::int64_t width;
  const bool centred;
  ColumnSizes sizes;
};

} // namespace

MadeKernel makeNorm(const KernelSpec &spec, const SharedContext &context) {
  if (spec.kernel.ends_with("_grad"))
    return makeOf<NormGrad>(spec, context);
  return makeOf<Norm>(spec, context);
}

} // namespace mtplan::runtime::cuda
