//===- rope.cpp - Rotary position embedding -------------------------------===//

#include <vector>

#include "runtime/cpu/families.h"
#include "runtime/cpu/simd.h"

namespace mtplan::runtime::cpu {

/// Rotates pairs (x, y) of one head; x and y are `step` apart, pairs are
/// `apart` apart.
template <typename R>
MTPLAN_INLINE void rotateAny(R *head, const R *cosine, const R *sine,
                             std::int64_t pairs, std::int64_t step,
                             std::int64_t apart) {
#pragma omp simd
  for (std::int64_t i = 0; i < pairs; ++i) {
    const R x = head[i * step], y = head[i * step + apart];
    head[i * step] = x * cosine[i] - y * sine[i];
    head[i * step + apart] = x * sine[i] + y * cosine[i];
  }
}
MTPLAN_CLONES void rotate(float *head, const float *cosine, const float *sine,
                          std::int64_t pairs, std::int64_t step,
                          std::int64_t apart) {
  rotateAny(head, cosine, sine, pairs, step, apart);
}
MTPLAN_CLONES void rotate(double *head, const double *cosine,
                          const double *sine, std::int64_t pairs,
                          std::int64_t step, std::int64_t apart) {
  rotateAny(head, cosine, sine, pairs, step, apart);
}

namespace {

template <typename R> class Rope : public Kernel {
public:
  Rope(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        length(spec.inputs[0].shape[1]), width(spec.inputs[0].shape[2]),
        headWidth(spec.integer("head_dim", 1)),
        pairs(spec.integer("rotary_dim", 0) / 2),
        interleaved(spec.integer("interleaved", 0) != 0) {
    const double theta = spec.number("theta", 1e4);
    const double turn = spec.integer("inverse", 0) != 0 ? -1.0 : 1.0;
    for (std::int64_t s = 0; s < length; ++s)
      for (std::int64_t i = 0; i < pairs; ++i) {
        const double angle =
            static_cast<double>(pieceOf(spec.inputs[0], 1).offset + s) *
            std::pow(theta,
                     -static_cast<double>(i) / static_cast<double>(pairs));
        cosines.push_back(static_cast<R>(std::cos(angle)));
        sines.push_back(static_cast<R>(turn * std::sin(angle)));
      }
    context->reserve(0, static_cast<std::size_t>(width) * sizeof(R));
  }

  void run(const Invocation &call) override {
    const ElementType from = spec.inputs[0].type, to = spec.outputs[0].type;
    context->forRange(
        spec.inputs[0].shape[0] * length, 32,
        [&](std::int64_t first, std::int64_t count, int thread) {
          for (std::int64_t t = first; t < first + count; ++t) {
            R *row = target(to, call.outputs[0], t * width,
                            context->ofThread<R>(thread));
            widenInto(from, at(call.inputs[0], from, t * width), width, row);
            const std::int64_t place = t % length * pairs;
            for (std::int64_t head = 0; head < width; head += headWidth)
              rotate(row + head, cosines.data() + place, sines.data() + place,
                     pairs, interleaved ? 2 : 1, interleaved ? 1 : pairs);
            narrow(to, call.outputs[0], t * width, width,
                   static_cast<const R *>(row));
          }
        });
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const std::int64_t length, width, headWidth, pairs;
  const bool interleaved;
  std::vector<R> cosines, sines; ///< by position and pair
};

} // namespace

MadeKernel makeRope(const KernelSpec &spec, const SharedContext &context) {
  return makeOf<Rope>(spec, context);
}

} // namespace mtplan::runtime::cpu
