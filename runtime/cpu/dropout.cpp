//===- dropout.cpp - Dropout ----------------------------------------------===//

#include "runtime/cpu/families.h"
#include "runtime/cpu/mask.h"
#include "runtime/cpu/simd.h"

namespace mtplan::runtime::cpu {

template <typename R>
MTPLAN_INLINE void multiplyAny(const R *a, const R *b, std::int64_t count,
                               R *to) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i)
    to[i] = a[i] * b[i];
}
MTPLAN_CLONES void multiplyInto(const float *a, const float *b,
                                std::int64_t count, float *to) {
  multiplyAny(a, b, count, to);
}
MTPLAN_CLONES void multiplyInto(const double *a, const double *b,
                                std::int64_t count, double *to) {
  multiplyAny(a, b, count, to);
}

namespace {

template <typename R> class Dropout : public Kernel {
public:
  Dropout(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        rate(spec.number("rate", 0.0)), name(spec.text("mask", "")) {
    const TensorView &view = spec.outputs[0];
    if (!view.shape.empty()) {
      width = view.shape.back();
      rows = view.elements() / width;
    }
    for (std::size_t d = 0; d < view.shape.size(); ++d)
      whole *= pieceOf(view, d).global;
    context->reserve(0, 3 * kChunk * sizeof(R));
  }

  void run(const Invocation &call) override {
    const Mask mask(Stream::ofMask(call.moment(), name),
                    rateAt(call.moment(), rate));
    const std::int64_t piece = std::max<std::int64_t>(1, kTask / width);
    context->forRange(
        rows, piece, [&](std::int64_t first, std::int64_t count, int thread) {
          for (std::int64_t row = first; row < first + count; ++row)
            runRow(call, mask, row, context->ofThread<R>(thread));
        });
  }

private:
  /// Returns the index of a row's first element in the global tensor.
  std::int64_t indexOf(std::int64_t row) const {
    const TensorView &view = spec.outputs[0];
    std::int64_t index = 0, size = 1;
    for (std::size_t d = view.shape.size(); d-- > 0;) {
      const Span span = pieceOf(view, d);
      std::int64_t place = 0;
      if (d + 1 < view.shape.size()) {
        place = row % view.shape[d];
        row /= view.shape[d];
      }
      index += (span.offset + place) * size;
      size *= span.global;
    }
    return index;
  }

  void runRow(const Invocation &call, const Mask &mask, std::int64_t row,
              R *buffer) const {
    const ElementType from = spec.inputs[0].type, to = spec.outputs[0].type;
    const std::int64_t start = maskIndex(call.moment(), whole, indexOf(row));
    for (std::int64_t h = 0; h < width; h += kChunk) {
      const std::int64_t count = std::min(kChunk, width - h);
      const std::int64_t element = row * width + h;
      R *kept = buffer;
      if (mask.drops())
        mask.fill(start + h, count, kept);
      else
        std::fill_n(kept, count, R(1));
      R *result = target(to, call.outputs[0], element, buffer + 2 * kChunk);
      multiplyInto(widen(from, call.inputs[0], element, count, buffer + kChunk),
                   kept, count, result);
      narrow(to, call.outputs[0], element, count, result);
    }
  }

  const SharedContext context;
  const KernelSpec spec;
  const double rate;
  const std::string name;
  std::int64_t width = 1, rows = 1, whole = 1;
};

} // namespace

MadeKernel makeDropout(const KernelSpec &spec, const SharedContext &context) {
  return makeOf<Dropout>(spec, context);
}

} // namespace mtplan::runtime::cpu
