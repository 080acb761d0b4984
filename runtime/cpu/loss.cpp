//===- loss.cpp - Cross entropy over rows of logits -----------------------===//

#include <limits>

#include "runtime/cpu/families.h"
#include "runtime/cpu/numbers.h"

namespace mtplan::runtime::cpu {

/// Returns the maximum of the elements and `largest`, or NaN if an element is
/// NaN.
template <typename R>
MTPLAN_INLINE R largestAny(const R *from, std::int64_t count, R largest) {
  R top = largest, odd = 0;
#pragma omp simd reduction(max : top) reduction(+ : odd)
  for (std::int64_t i = 0; i < count; ++i) {
    top = from[i] > top ? from[i] : top;
    odd += from[i] != from[i] ? R(1) : R(0);
  }
  return odd > R(0) ? std::numeric_limits<R>::quiet_NaN() : top;
}
MTPLAN_CLONES float largestOf(const float *from, std::int64_t count,
                              float largest) {
  return largestAny(from, count, largest);
}
MTPLAN_CLONES double largestOf(const double *from, std::int64_t count,
                               double largest) {
  return largestAny(from, count, largest);
}

template <typename R>
MTPLAN_INLINE R sumExpAny(const R *from, std::int64_t count, R largest) {
  R sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i)
    sum += expOf(from[i] - largest);
  return sum;
}
MTPLAN_CLONES float sumExpOf(const float *from, std::int64_t count,
                             float largest) {
  return sumExpAny(from, count, largest);
}
MTPLAN_CLONES double sumExpOf(const double *from, std::int64_t count,
                              double largest) {
  return sumExpAny(from, count, largest);
}

template <typename R>
MTPLAN_INLINE void sharesAny(const R *from, std::int64_t count, R largest,
                             R factor, R *to) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i)
    to[i] = expOf(from[i] - largest) * factor;
}
MTPLAN_CLONES void sharesOf(const float *from, std::int64_t count,
                            float largest, float factor, float *to) {
  sharesAny(from, count, largest, factor, to);
}
MTPLAN_CLONES void sharesOf(const double *from, std::int64_t count,
                            double largest, double factor, double *to) {
  sharesAny(from, count, largest, factor, to);
}

namespace {

/// Implements the kernels that read rows of logits; a task is a row.
template <typename R> class Vocab : public Kernel {
public:
  Vocab(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        type(spec.inputs[0].type), width(spec.inputs[0].shape.back()),
        offset(pieceOf(spec.inputs[0], spec.inputs[0].shape.size() - 1).offset),
        real(std::clamp<std::int64_t>(
            spec.integer("classes", std::numeric_limits<std::int64_t>::max()) -
                offset,
            0, width)),
        rows(spec.inputs[0].elements() / width) {
    context->reserve(0, 2 * kChunk * sizeof(R));
  }

  void run(const Invocation &call) override {
    context->forEach(rows, [&](std::int64_t row, int thread) {
      R *buffer = context->ofThread<R>(thread);
      if (spec.kernel == "vocab_max")
        put(call, row, largest(call, row, buffer));
      else if (spec.kernel == "vocab_sum_exp")
        put(call, row, sumExp(call, row, buffer));
      else if (spec.kernel == "vocab_pick")
        put(call, row, pick(call, row));
      else
        gradient(call, row, buffer);
    });
  }

private:
  void put(const Invocation &call, std::int64_t row, double value) const {
    writeElement(spec.outputs[0].type, call.outputs[0], row, value);
  }
  double number(const Invocation &call, std::size_t operand,
                std::int64_t row) const {
    return readElement(spec.inputs[operand].type, call.inputs[operand], row);
  }

  /// Calls `visit(logits, first, count)` for each chunk of the row, without
  /// classes that only pad the vocabulary.
  template <typename Visit>
  void forPieces(const Invocation &call, std::int64_t row, R *buffer,
                 Visit &&visit) const {
    for (std::int64_t v = 0; v < real; v += kChunk) {
      const std::int64_t piece = std::min(kChunk, real - v);
      visit(widen(type, call.inputs[0], row * width + v, piece, buffer), v,
            piece);
    }
  }

  double largest(const Invocation &call, std::int64_t row, R *buffer) const {
    // A shard that holds only padding yields -infinity, the neutral element of
    // max.
    R top = -std::numeric_limits<R>::infinity();
    forPieces(call, row, buffer,
              [&](const R *from, std::int64_t, std::int64_t count) {
                if (top == top)
                  top = largestOf(from, count, top);
              });
    return static_cast<double>(top);
  }

  double sumExp(const Invocation &call, std::int64_t row, R *buffer) const {
    const R top = static_cast<R>(number(call, 1, row));
    double sum = 0.0;
    forPieces(call, row, buffer,
              [&](const R *from, std::int64_t, std::int64_t count) {
                sum += static_cast<double>(sumExpOf(from, count, top));
              });
    return sum;
  }

  /// Returns the index of class `target` in the local row, or -1.
  std::int64_t find(std::int64_t target) const {
    const std::int64_t local = target - offset;
    return target >= 0 && local >= 0 && local < width ? local : -1;
  }

  double pick(const Invocation &call, std::int64_t row) const {
    const auto *targets = static_cast<const std::int32_t *>(call.inputs[1]);
    const std::int64_t v = find(targets[row]);
    return v < 0 ? 0.0 : readElement(type, call.inputs[0], row * width + v);
  }

  void gradient(const Invocation &call, std::int64_t row, R *buffer) const {
    const ElementType to = spec.outputs[0].type;
    const std::int64_t target =
        static_cast<const std::int32_t *>(call.inputs[3])[row];
    const std::int64_t used = target < 0 ? 0 : real;
    const double count = number(call, 4, 0);
    if (used > 0) {
      const double top = number(call, 1, row), sum = number(call, 2, row);
      forPieces(call, row, buffer,
                [&](const R *from, std::int64_t v, std::int64_t piece) {
                  R *shares = cpu::target(to, call.outputs[0], row * width + v,
                                          buffer + kChunk);
                  sharesOf(from, piece, static_cast<R>(top),
                           static_cast<R>(1.0 / (sum * count)), shares);
                  narrow(to, call.outputs[0], row * width + v, piece, shares);
                });
      if (const std::int64_t v = find(target); v >= 0 && v < real) {
        const double logit = readElement(type, call.inputs[0], row * width + v);
        writeElement(to, call.outputs[0], row * width + v,
                     (std::exp(logit - top) / sum - 1.0) / count);
      }
    }
    std::memset(at(call.outputs[0], to, row * width + used), 0,
                static_cast<std::size_t>((width - used) * bytesOf(to)));
  }

  const SharedContext context;
  const KernelSpec spec;
  const ElementType type; ///< type of the logits
  const std::int64_t width, offset, real, rows;
};

/// A single thread sums the loss, because one number per token is too little
/// work for several threads.
class TokenLoss : public Kernel {
public:
  explicit TokenLoss(KernelSpec theSpec) : spec(std::move(theSpec)) {}

  void run(const Invocation &call) override {
    const auto number = [&](std::size_t operand, std::int64_t i) {
      return readElement(spec.inputs[operand].type, call.inputs[operand], i);
    };
    const std::vector<std::int64_t> &shape = spec.inputs[0].shape;
    const std::int64_t samples = shape.empty() ? 1 : shape[0];
    const std::int64_t tokens = spec.inputs[0].elements() / samples;
    const auto rounded = [](ElementType like, double value) {
      return like == ElementType::f64
                 ? value
                 : static_cast<double>(static_cast<float>(value));
    };
    double loss = 0.0;
    for (std::int64_t b = 0; b < samples; ++b) {
      double sum = 0.0;
      for (std::int64_t t = b * tokens; t < (b + 1) * tokens; ++t)
        if (number(3, t) >= 0)
          sum += std::log(number(1, t)) + number(0, t) - number(2, t);
      const double term = rounded(spec.inputs[0].type, sum / number(4, 0));
      loss = rounded(spec.outputs[0].type, loss + term);
    }
    writeElement(spec.outputs[0].type, call.outputs[0], 0, loss);
  }

private:
  const KernelSpec spec;
};

} // namespace

MadeKernel makeVocab(const KernelSpec &spec, const SharedContext &context) {
  return makeOf<Vocab>(spec, context);
}

MadeKernel makeTokenLoss(const KernelSpec &spec, const SharedContext &) {
  return std::make_unique<TokenLoss>(spec);
}

} // namespace mtplan::runtime::cpu
