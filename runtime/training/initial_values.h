//===- initial_values.h - What parameters are before step 1 -----*- C++ -*-===//
//
//   normal     N(0, deviation)
//   residual   N(0, deviation / sqrt(2 L)) for L layers: what is added to the
//              residual stream (Radford et al. 2019)
//   ones       1
//   zeros      0
//
// An element's value is a function of (seed, label, copy, its index in the
// whole tensor), so every layout starts from the same model. Four elements
// share a draw: draw i / 4 has words w; elements 4k and 4k + 1 are the cosine
// and the sine of Box and Muller's pair from w[0] and w[1], the next two from
// w[2] and w[3]. (The parameters of draws.h are for proofs, not for training.)
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_TRAINING_INITIAL_VALUES_H
#define MTPLAN_RUNTIME_TRAINING_INITIAL_VALUES_H

#include <cstdint>
#include <string_view>

#include "runtime/backend/tensor_view.h"

namespace mtplan::runtime {

struct Initialisation {
  std::uint64_t seed = 1234;
  double deviation = 0.02;
  std::int64_t layers = 1; ///< L, of the whole model
};

/// Fills one rank's piece of a parameter, row-major.
/// \param init   as of mtp.parameter: normal, residual, ones or zeros
/// \param piece  its shape and where it lies; its type is not read
/// \throws std::invalid_argument if there is no such `init`
void fillInitial(const Initialisation &how, std::string_view label,
                 std::int64_t copy, std::string_view init,
                 const TensorView &piece, float *out);
void fillInitial(const Initialisation &how, std::string_view label,
                 std::int64_t copy, std::string_view init,
                 const TensorView &piece, double *out);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_TRAINING_INITIAL_VALUES_H
