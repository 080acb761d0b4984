//===- pointwise.cuh - Pointwise kernels ------------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_POINTWISE_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_POINTWISE_CUH

#include "runtime/backend/activation_kind.h"
#include "runtime/cuda/device/elements.cuh"

namespace mtplan::runtime::cuda {

/// Calls `body(x, y)` for each element; `body` computes the results y from the
/// operands x. A thread processes a pack.
template <typename R, int Inputs, int Outputs, typename Body>
__global__ void eachElement(Several<Operand, Inputs> from,
                            Several<Result, Outputs> to, std::int64_t elements,
                            Body body) {
  const std::int64_t first = threadOfGrid() * kPack;
  if (first >= elements)
    return;
  const int count = packAt(first, elements);
  R packs[Inputs][kPack], results[Outputs][kPack];
  loadTogether(from, first, count, packs);
#pragma unroll
  for (int e = 0; e < kPack; ++e) {
    Several<R, Inputs> x;
    Several<R, Outputs> y;
#pragma unroll
    for (int i = 0; i < Inputs; ++i)
      x[i] = packs[i][e];
    body(x, y);
#pragma unroll
    for (int i = 0; i < Outputs; ++i)
      results[i][e] = y[i];
  }
#pragma unroll
  for (int i = 0; i < Outputs; ++i)
    store(to[i], first, count, results[i]);
}

/// Holds the value and the derivative of a function at a point.
template <typename R> struct Jet { R value, slope; };

template <typename R> __device__ Jet<R> sigmoid(R x) {
  const R share = R(1) / (R(1) + exp(-x));
  return {share, share * (R(1) - share)};
}

/// Returns 1 / (1 + exp(-x)), or 0 for x below -87. The error is smaller than
/// the rounding error of 16-bit types.
inline __device__ float roughSigmoid(float x) {
#if defined(__CUDA_ARCH__)
  return __fdividef(1.0F, 1.0F + __expf(-x));
#else
  return sigmoid(x).value;
#endif
}

/// \tparam Rough  whether x and the results have 16 bits in memory
template <bool Rough = false, typename R> __device__ Jet<R> silu(R x) {
  R share;
  if constexpr (Rough)
    share = roughSigmoid(x);
  else
    share = sigmoid(x).value;
  return {x * share, share * (R(1) + x * (R(1) - share))};
}

inline constexpr double kRootHalf = 0.70710678118654752440;  // 1 / sqrt(2)
inline constexpr double kInvRootPi = 0.56418958354775628695; // 1 / sqrt(pi)
inline constexpr double kRootTwoOverPi = 0.79788456080286535588;

template <typename R> __device__ Jet<R> gelu(R x) {
  const R below = R(0.5) * (R(1) + erf(x * R(kRootHalf)));
  const R density = exp(R(-0.5) * x * x) * R(kInvRootPi * kRootHalf);
  return {x * below, below + x * density};
}

/// Approximates GELU by tanh (Hendrycks and Gimpel 2016).
template <typename R> __device__ Jet<R> geluTanh(R x) {
  const R bent = tanh(R(kRootTwoOverPi) * (x + R(0.044715) * x * x * x));
  const R inner = R(kRootTwoOverPi) * (R(1) + R(3 * 0.044715) * x * x);
  return {R(0.5) * x * (R(1) + bent),
          R(0.5) * (R(1) + bent) + R(0.5) * x * (R(1) - bent * bent) * inner};
}

template <typename R> __device__ Jet<R> activate(Activation kind, R x) {
  switch (kind) {
  case Activation::gelu:
    return gelu(x);
  case Activation::geluTanh:
    return geluTanh(x);
  case Activation::silu:
    return silu(x);
  case Activation::relu:
    // The comparison is false for NaN, so that NaN stays NaN.
    return x <= R(0) ? Jet<R>{R(0), R(0)} : Jet<R>{x, R(1)};
  case Activation::tanh: {
    const R bent = tanh(x);
    return {bent, R(1) - bent * bent};
  }
  case Activation::sigmoid:
    return sigmoid(x);
  }
  return {x, R(1)};
}

struct EachSame {
  template <typename In, typename Out>
  __device__ void operator()(const In &x, Out &y) const {
    y[0] = x[0];
  }
};

struct EachSum {
  template <typename In, typename Out>
  __device__ void operator()(const In &x, Out &y) const {
    y[0] = x[0] + x[1];
  }
};

struct EachProduct {
  template <typename In, typename Out>
  __device__ void operator()(const In &x, Out &y) const {
    y[0] = x[0] * x[1];
  }
};

struct EachScaled {
  double factor;
  template <typename R>
  __device__ void operator()(const Several<R, 1> &x, Several<R, 1> &y) const {
    y[0] = x[0] * static_cast<R>(factor);
  }
};

struct Activated {
  Activation kind;
  template <typename In, typename Out>
  __device__ void operator()(const In &x, Out &y) const {
    y[0] = activate(kind, x[0]).value;
  }
};

struct ActivatedGrad {
  Activation kind;
  template <typename In, typename Out>
  __device__ void operator()(const In &x, Out &y) const {
    y[0] = x[1] * activate(kind, x[0]).slope;
  }
};

template <bool Rough> struct SwigluBody {
  template <typename In, typename Out>
  __device__ void operator()(const In &x, Out &y) const {
    y[0] = silu<Rough>(x[0]).value * x[1];
  }
};

template <bool Rough> struct SwigluGradBody {
  template <typename In, typename Out>
  __device__ void operator()(const In &x, Out &y) const {
    const auto gate = silu<Rough>(x[0]);
    y[0] = x[2] * gate.slope * x[1];
    y[1] = x[2] * gate.value;
  }
};

struct Swiglu : SwigluBody<false> {
  using In16Bits = SwigluBody<true>;
};
struct SwigluGrad : SwigluGradBody<false> {
  using In16Bits = SwigluGradBody<true>;
};

struct Softcapped {
  double cap;
  template <typename R>
  __device__ void operator()(const Several<R, 1> &x, Several<R, 1> &y) const {
    y[0] = static_cast<R>(cap) * tanh(x[0] / static_cast<R>(cap));
  }
};

/// Computes the gradient from the result (x[0]) and its gradient (x[1]).
struct SoftcappedGrad {
  double cap;
  template <typename R>
  __device__ void operator()(const Several<R, 2> &x, Several<R, 1> &y) const {
    const R share = x[0] / static_cast<R>(cap);
    y[0] = x[1] * (R(1) - share * share);
  }
};

template <typename Tensor, int Count>
bool are16Bits(const Several<Tensor, Count> &tensors) {
  bool all = true;
  for (const Tensor &tensor : tensors.items)
    all &= bytesOf(tensor.type) == 2;
  return all;
}

/// Queues `body` for all elements. Body::In16Bits, if it exists, replaces Body
/// if all elements have 16 bits.
template <typename R, int Inputs, int Outputs, typename Body>
void each(cudaStream_t stream, const Several<Operand, Inputs> &from,
          const Several<Result, Outputs> &to, std::int64_t elements,
          const Body &body) {
  if constexpr (std::is_same_v<R, float> &&
                requires { typename Body::In16Bits; })
    if (are16Bits(from) && are16Bits(to))
      return each<R>(stream, from, to, elements, typename Body::In16Bits());
  launch(stream, gridOf(blocksFor(elements, kPack)),
         eachElement<R, Inputs, Outputs, Body>, from, to, elements, body);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_POINTWISE_CUH
