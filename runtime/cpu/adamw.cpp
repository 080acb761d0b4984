//===- adamw.cpp - The AdamW update ---------------------------------------===//

#include "runtime/cpu/families.h"
#include "runtime/cpu/numbers.h"

namespace mtplan::runtime::cpu {

template <typename R> struct AdamwPiece {
  const R *gradient;
  R *master, *mean, *square;
  std::int64_t count;
  R factor, beta1, beta2, correction1, correction2, epsilon, rate;
  R shrink; ///< 1 - learning rate * decay
};

/// Updates parameters by AdamW (Loshchilov and Hutter 2019).
template <typename R> MTPLAN_INLINE void adamwAny(const AdamwPiece<R> &p) {
  const R *gradient = p.gradient;
  R *master = p.master, *mean = p.mean, *square = p.square;
#pragma omp simd
  for (std::int64_t i = 0; i < p.count; ++i) {
    const R slope = gradient[i] * p.factor;
    const R m = p.beta1 * mean[i] + (R(1) - p.beta1) * slope;
    const R v = p.beta2 * square[i] + (R(1) - p.beta2) * slope * slope;
    mean[i] = m;
    square[i] = v;
    master[i] =
        master[i] * p.shrink - p.rate * (m * p.correction1) /
                                   (std::sqrt(v * p.correction2) + p.epsilon);
  }
}
MTPLAN_CLONES void adamwLoop(const AdamwPiece<float> &p) { adamwAny(p); }
MTPLAN_CLONES void adamwLoop(const AdamwPiece<double> &p) { adamwAny(p); }

namespace {

template <typename R> class Adamw : public Kernel {
public:
  Adamw(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        decays(spec.integer("decay", 0) != 0) {
    context->reserve(0, 4 * kChunk * sizeof(R));
  }

  void run(const Invocation &call) override {
    const UpdateNumbers &numbers = call.step->update;
    updates = numbers.updates != 0.0;
    const auto step = static_cast<double>(numbers.step);
    AdamwPiece<R> all{};
    all.factor = static_cast<R>(numbers.gradientFactor);
    all.beta1 = static_cast<R>(numbers.beta1);
    all.beta2 = static_cast<R>(numbers.beta2);
    all.correction1 =
        static_cast<R>(1.0 / (1.0 - std::pow(numbers.beta1, step)));
    all.correction2 =
        static_cast<R>(1.0 / (1.0 - std::pow(numbers.beta2, step)));
    all.epsilon = static_cast<R>(numbers.epsilon);
    all.rate = static_cast<R>(numbers.learningRate);
    all.shrink = static_cast<R>(
        decays ? 1.0 - numbers.learningRate * numbers.weightDecay : 1.0);
    context->forRange(
        spec.inputs[0].elements(), kTask,
        [&](std::int64_t first, std::int64_t count, int thread) {
          R *buffer = context->ofThread<R>(thread);
          for (std::int64_t i = first; i < first + count; i += kChunk)
            runChunk(call, all, i, std::min(kChunk, first + count - i), buffer);
        });
  }

private:
  void runChunk(const Invocation &call, AdamwPiece<R> piece, std::int64_t first,
                std::int64_t count, R *buffer) const {
    piece.count = count;
    piece.gradient =
        widen(spec.inputs[0].type, call.inputs[0], first, count, buffer);
    R **const states[] = {&piece.master, &piece.mean, &piece.square};
    for (std::size_t i = 0; i < 3; ++i) {
      const ElementType type = spec.outputs[i + 1].type;
      R *own = buffer + static_cast<std::int64_t>(i + 1) * kChunk;
      *states[i] = target(type, call.outputs[i + 1], first, own);
      if (*states[i] == own)
        widenInto(type, at(call.outputs[i + 1], type, first), count, own);
    }
    if (updates)
      adamwLoop(piece);
    for (std::size_t i = 0; i < 3; ++i)
      narrow(spec.outputs[i + 1].type, call.outputs[i + 1], first, count,
             static_cast<const R *>(*states[i]));
    narrow(spec.outputs[0].type, call.outputs[0], first, count,
           static_cast<const R *>(piece.master));
  }

  const SharedContext context;
  const KernelSpec spec;
  const bool decays;
  bool updates = true; ///< false: the step is skipped
};

} // namespace

MadeKernel makeAdamw(const KernelSpec &spec, const SharedContext &context) {
  if (spec.outputs[1].type == ElementType::f64)
    return std::make_unique<Adamw<double>>(spec, context);
  return std::make_unique<Adamw<float>>(spec, context);
}

} // namespace mtplan::runtime::cpu
