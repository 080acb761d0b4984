//===- pointwise.cpp - Pointwise operators and copies ---------------------===//

#include <map>
#include <numbers>
#include <optional>
#include <string>

#include "runtime/backend/signature.h"
#include "runtime/backend/strided_source.h"
#include "runtime/cpu/families.h"
#include "runtime/cpu/numbers.h"
#include "runtime/plan/kernel_settings.h"

namespace mtplan::runtime::cpu {

//===----------------------------------------------------------------------===//
// Pointwise operators
//===----------------------------------------------------------------------===//

/// Holds up to three operands and two results, of `count` elements each.
template <typename R> struct Pieces {
  const R *in[3];
  R *out[2];
  std::int64_t count;
  R factor;
};

namespace {

template <typename R> MTPLAN_INLINE R tanhOf(R x) { return std::tanh(x); }
template <typename R> MTPLAN_INLINE R erfOf(R x) { return std::erf(x); }

/// bend() is twice the argument u of the tanh in GPT-2's gelu (Hendrycks and
/// Gimpel 2016), because 0.5 (1 + tanh u) = sigmoid(2 u). bendSlope() is the
/// derivative of bend().
template <typename R> MTPLAN_INLINE R bend(R x) {
  constexpr R kScale =
      R(2) * R(std::numbers::sqrt2) * R(std::numbers::inv_sqrtpi);
  return kScale * x * (R(1) + R(0.044715) * x * x);
}
template <typename R> MTPLAN_INLINE R bendSlope(R x) {
  constexpr R kScale =
      R(2) * R(std::numbers::sqrt2) * R(std::numbers::inv_sqrtpi);
  return kScale * (R(1) + R(3 * 0.044715) * x * x);
}

template <Activation Kind, typename R> MTPLAN_INLINE R valueOf(R x) {
  if constexpr (Kind == Activation::gelu)
    return R(0.5) * x * (R(1) + erfOf(x * R(1 / std::numbers::sqrt2)));
  else if constexpr (Kind == Activation::geluTanh)
    return x * sigmoidOf(bend(x));
  else if constexpr (Kind == Activation::silu)
    return x * sigmoidOf(x);
  else if constexpr (Kind == Activation::relu)
    return x <= R(0) ? R(0) : x; // a NaN stays NaN
  else if constexpr (Kind == Activation::tanh)
    return tanhOf(x);
  else if constexpr (Kind == Activation::sigmoid)
    return sigmoidOf(x);
}

template <Activation Kind, typename R> MTPLAN_INLINE R slopeOf(R x) {
  if constexpr (Kind == Activation::gelu) {
    constexpr R kDensity = R(std::numbers::inv_sqrtpi) / R(std::numbers::sqrt2);
    return R(0.5) * (R(1) + erfOf(x * R(1 / std::numbers::sqrt2))) +
           x * kDensity * expOf(R(-0.5) * x * x);
  } else if constexpr (Kind == Activation::geluTanh) {
    const R share = sigmoidOf(bend(x));
    return share + x * share * (R(1) - share) * bendSlope(x);
  } else if constexpr (Kind == Activation::silu) {
    const R share = sigmoidOf(x);
    return share * (R(1) + x * (R(1) - share));
  } else if constexpr (Kind == Activation::relu) {
    return x <= R(0) ? R(0) : R(1);
  } else if constexpr (Kind == Activation::tanh) {
    const R value = tanhOf(x);
    return R(1) - value * value;
  } else if constexpr (Kind == Activation::sigmoid) {
    const R share = sigmoidOf(x);
    return share * (R(1) - share);
  }
}

} // namespace

// Defines the loop o[i] = expression for float, double and every vector width.
// x, y and z are elements of the operands, and k is the constant.
#define MTPLAN_LOOP(name, R, expression)                                       \
  MTPLAN_CLONES void name(const Pieces<R> &p) {                                \
    const auto *a = p.in[0];                                                   \
    const auto *b = p.in[1], *c = p.in[2];                                     \
    auto *o = p.out[0];                                                        \
    [[maybe_unused]] const auto k = p.factor;                                  \
    _Pragma("omp simd") for (std::int64_t i = 0; i < p.count; ++i) {           \
      [[maybe_unused]] const auto x = a[i], y = b[i], z = c[i];                \
      o[i] = (expression);                                                     \
    }                                                                          \
  }
#define MTPLAN_LOOPS(name, expression)                                         \
  MTPLAN_LOOP(name, float, expression)                                         \
  MTPLAN_LOOP(name, double, expression)

MTPLAN_LOOPS(addLoop, x + y)
MTPLAN_LOOPS(mulLoop, x *y)
MTPLAN_LOOPS(scaleLoop, x *k)
MTPLAN_LOOPS(copyLoop, x)
MTPLAN_LOOPS(geluLoop, valueOf<Activation::gelu>(x))
MTPLAN_LOOPS(geluTanhLoop, valueOf<Activation::geluTanh>(x))
MTPLAN_LOOPS(siluLoop, valueOf<Activation::silu>(x))
MTPLAN_LOOPS(reluLoop, valueOf<Activation::relu>(x))
MTPLAN_LOOPS(tanhLoop, valueOf<Activation::tanh>(x))
MTPLAN_LOOPS(sigmoidLoop, valueOf<Activation::sigmoid>(x))
MTPLAN_LOOPS(geluGradLoop, y *slopeOf<Activation::gelu>(x))
MTPLAN_LOOPS(geluTanhGradLoop, y *slopeOf<Activation::geluTanh>(x))
MTPLAN_LOOPS(siluGradLoop, y *slopeOf<Activation::silu>(x))
MTPLAN_LOOPS(reluGradLoop, y *slopeOf<Activation::relu>(x))
MTPLAN_LOOPS(tanhGradLoop, y *slopeOf<Activation::tanh>(x))
MTPLAN_LOOPS(sigmoidGradLoop, y *slopeOf<Activation::sigmoid>(x))
MTPLAN_LOOPS(swigluLoop, x *sigmoidOf(x) * y)
MTPLAN_LOOPS(softcapLoop, k *tanhOf(x / k))
MTPLAN_LOOPS(softcapGradLoop, y - y * (x / k) * (x / k))

#undef MTPLAN_LOOPS
#undef MTPLAN_LOOP

template <typename R> MTPLAN_INLINE void swigluGradAny(const Pieces<R> &p) {
  const R *gate = p.in[0], *up = p.in[1], *gradient = p.in[2];
  R *gateGradient = p.out[0], *upGradient = p.out[1];
#pragma omp simd
  for (std::int64_t i = 0; i < p.count; ++i) {
    const R share = sigmoidOf(gate[i]);
    const R slope = share * (R(1) + gate[i] * (R(1) - share));
    const R above = gradient[i];
    gateGradient[i] = above * slope * up[i];
    upGradient[i] = above * gate[i] * share;
  }
}
MTPLAN_CLONES void swigluGradLoop(const Pieces<float> &p) { swigluGradAny(p); }
MTPLAN_CLONES void swigluGradLoop(const Pieces<double> &p) { swigluGradAny(p); }

namespace {

template <typename R> using Loop = void (*)(const Pieces<R> &);

template <typename R>
Loop<R> activationLoop(const KernelSpec &spec, bool gradient) {
  static const Loop<R> kValues[] = {geluLoop, geluTanhLoop, siluLoop,
                                    reluLoop, tanhLoop,     sigmoidLoop};
  static const Loop<R> kSlopes[] = {geluGradLoop, geluTanhGradLoop,
                                    siluGradLoop, reluGradLoop,
                                    tanhGradLoop, sigmoidGradLoop};
  static_assert(std::size(kValues) == std::size(kActivations) &&
                std::size(kSlopes) == std::size(kActivations));
  return (gradient ? kSlopes : kValues)[static_cast<int>(activationOf(spec))];
}

/// Returns the loops by kernel. A loop that depends on `kind` is null.
template <typename R> const std::map<std::string, Loop<R>> &loops() {
  static const std::map<std::string, Loop<R>> kLoops = {
      {"accumulate", addLoop},
      {"activation", nullptr},
      {"add", addLoop},
      {"activation_grad", nullptr},
      {"cast", copyLoop},
      {"copy", copyLoop},
      {"mul", mulLoop},
      {"scale", scaleLoop},
      {"swiglu", swigluLoop},
      {"swiglu_grad", swigluGradLoop},
      {"logit_softcap", softcapLoop},
      {"logit_softcap_grad", softcapGradLoop},
  };
  return kLoops;
}

template <typename R> Loop<R> loopOf(const KernelSpec &spec) {
  const Loop<R> loop = loops<R>().at(spec.kernel);
  return loop ? loop
              : activationLoop<R>(spec, spec.kernel == "activation_grad");
}

template <typename R> class Pointwise : public Kernel {
public:
  Pointwise(const KernelSpec &spec, SharedContext theContext)
      : context(std::move(theContext)), loop(loopOf<R>(spec)),
        accumulates(spec.kernel == "accumulate"),
        firstTerm(firstTermOf(spec.settings)),
        factor(static_cast<R>(
            spec.number(spec.find("cap") ? "cap" : "factor", 1.0))),
        total(spec.outputs[0].elements()) {
    for (const TensorView &view : spec.inputs)
      inTypes.push_back(view.type);
    for (const TensorView &view : spec.outputs)
      outTypes.push_back(view.type);
    if (accumulates)
      inTypes.push_back(outTypes[0]);
    context->reserve(0, 5 * kChunk * sizeof(R));
  }

  void run(const Invocation &call) override {
    const bool stores =
        accumulates && firstTerm.isOf(call.microBatch, call.copy);
    const std::size_t operands = stores ? 1 : inTypes.size();
    const Loop<R> how = stores ? Loop<R>(copyLoop) : loop;
    const void *from[3] = {call.inputs[0], nullptr, nullptr};
    for (std::size_t i = 0; i < operands; ++i)
      from[i] = accumulates && i == 1 ? call.outputs[0] : call.inputs[i];
    context->forRange(
        total, kTask, [&](std::int64_t first, std::int64_t count, int thread) {
          R *buffer = context->ofThread<R>(thread);
          for (std::int64_t i = first; i < first + count; i += kChunk)
            runChunk(how, operands, from, call.outputs, i,
                     std::min(kChunk, first + count - i), buffer);
        });
  }

private:
  void runChunk(Loop<R> how, std::size_t operands, const void *const *from,
                void *const *to, std::int64_t first, std::int64_t count,
                R *buffer) const {
    Pieces<R> pieces{{}, {}, count, factor};
    for (std::size_t i = 0; i < 3; ++i)
      pieces.in[i] = i < operands ? widen(inTypes[i], from[i], first, count,
                                          buffer + i * kChunk)
                                  : pieces.in[0];
    for (std::size_t i = 0; i < outTypes.size(); ++i)
      pieces.out[i] =
          target(outTypes[i], to[i], first, buffer + (3 + i) * kChunk);
    how(pieces);
    for (std::size_t i = 0; i < outTypes.size(); ++i)
      narrow(outTypes[i], to[i], first, count, pieces.out[i]);
  }

  const SharedContext context;
  const Loop<R> loop;
  const bool accumulates;
  const FirstTerm firstTerm;
  const R factor;
  const std::int64_t total;
  std::vector<ElementType> inTypes, outTypes;
};

MadeKernel makePointwise(const KernelSpec &spec, const SharedContext &context) {
  const ElementType from = spec.inputs[0].type, to = spec.outputs[0].type;
  if (spec.kernel == "copy" || spec.kernel == "cast") {
    if (from == to)
      return makeMove(spec, context);
    if (from == ElementType::i32 || to == ElementType::i32)
      return nullptr;
  }
  return makeOf<Pointwise>(spec, context);
}

} // namespace

void addPointwise(std::map<std::string, Maker> &table) {
  for (const auto &[name, loop] : loops<float>())
    table[name] = makePointwise;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

namespace {

/// Implements slice, piece, transpose, mask and zeros, and copy and cast
/// between equal types. The kernel copies contiguous runs of bytes, or sets
/// them to zero.
class Move : public Kernel {
public:
  Move(const KernelSpec &spec, SharedContext theContext)
      : context(std::move(theContext)) {
    const TensorView &result = spec.outputs[0];
    width = bytesOf(result.type);
    length = result.elements() * width;
    clears = spec.kernel == "zeros" ||
             (spec.kernel == "mask" && spec.integer("place", 0) != 0);
    if (spec.kernel == "slice" || spec.kernel == "piece" ||
        spec.kernel == "transpose") {
      source.emplace(spec);
      length = source->length * width;
      runs = source->runs();
    }
  }

  void run(const Invocation &call) override {
    auto *to = static_cast<std::byte *>(call.outputs[0]);
    const auto *from =
        clears ? nullptr : static_cast<const std::byte *>(call.inputs[0]);
    const std::int64_t pieces = (length + kPiece - 1) / kPiece;
    context->forRange(
        runs * pieces, std::max<std::int64_t>(1, kPiece / length),
        [&](std::int64_t first, std::int64_t count, int) {
          for (std::int64_t i = first; i < first + count; ++i) {
            const std::int64_t run = i / pieces, begin = i % pieces * kPiece;
            const auto bytes =
                static_cast<std::size_t>(std::min(kPiece, length - begin));
            std::byte *into = to + run * length + begin;
            if (from)
              std::memcpy(into,
                          from + (source ? source->at(run) * width : 0) + begin,
                          bytes);
            else
              std::memset(into, 0, bytes);
          }
        });
  }

private:
  static constexpr std::int64_t kPiece = 1 << 18; ///< bytes per copy

  const SharedContext context;
  std::optional<StridedSource> source;
  std::int64_t runs = 1;
  std::int64_t width, length; ///< bytes per element and per run
  bool clears;
};

} // namespace

MadeKernel makeMove(const KernelSpec &spec, const SharedContext &context) {
  if (spec.kernel == "mask" && spec.inputs[0].type != spec.outputs[0].type)
    return nullptr;
  return std::make_unique<Move>(spec, context);
}

} // namespace mtplan::runtime::cpu
