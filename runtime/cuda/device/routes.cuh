//===- routes.cuh - Which experts a token goes to ---------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_ROUTES_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_ROUTES_CUH

#include "runtime/cuda/device/elements.cuh"

namespace mtplan::runtime::cuda {

/// A token's logits. A thread has a whole token: experts are few, and the row
/// stays in the nearest cache.
template <typename R> struct Token {
  Operand logits;
  std::int64_t start, experts;

  __device__ R logit(std::int64_t expert) const {
    return loadOne<R>(logits, start + expert);
  }

  /// Calls `use(expert, logit, choice)` for the `count` largest logits, largest
  /// first, of equal ones the first.
  template <typename Use>
  __device__ void choose(std::int64_t count, Use use) const {
    std::int64_t last = -1;
    R least = R(0);
    for (std::int64_t choice = 0; choice < count; ++choice) {
      std::int64_t best = -1;
      R most = R(0);
      for (std::int64_t e = 0; e < experts; ++e) {
        const R value = logit(e);
        const bool left =
            last < 0 || value < least || (value == least && e > last);
        if (left && (best < 0 || value > most)) {
          best = e;
          most = value;
        }
      }
      if (best < 0) // what is left are no numbers
        return;
      use(best, most, choice);
      last = best;
      least = most;
    }
  }

  /// What its probabilities are made with.
  struct Softmax {
    R largest, total;
    __device__ R share(R value) const { return exp(value - largest) / total; }
  };
  __device__ Softmax softmax() const {
    Softmax of{-R(INFINITY), R(0)};
    for (std::int64_t e = 0; e < experts; ++e)
      of.largest = logit(e) > of.largest ? logit(e) : of.largest;
    for (std::int64_t e = 0; e < experts; ++e)
      of.total += exp(logit(e) - of.largest);
    return of;
  }
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_ROUTES_CUH
