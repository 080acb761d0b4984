//===- initial_values.h - Initial values of parameters ----------*- C++ -*-===//
//
//   normal     N(0, deviation)
//   residual   N(0, deviation / sqrt(2 L)) for L layers: projections into the
//              residual stream (Radford et al. 2019)
//   ones       1
//   zeros      0
//
// An element's value is a function of the seed, the label, the layer and the
// index in the global tensor. Therefore every layout starts from the same
// model. Four elements share one draw, which has four words w. For draw k,
// elements 4k and 4k + 1 are the cosine and the sine of the Box-Muller pair
// from w[0] and w[1]. Elements 4k + 2 and 4k + 3 come from w[2] and w[3].
// (draws.h defines other initial values, which are for tests only.)
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
  std::int64_t layers = 1; ///< L, layers of the model
};

/// Fills one rank's shard of a parameter, row-major.
/// \param copy   number of the layer in the whole model
/// \param init   normal, residual, ones or zeros, as in mtp.parameter
/// \param piece  shape and offsets of the shard; its type is ignored
/// \throws std::invalid_argument if `init` is another word
void fillInitial(const Initialisation &how, std::string_view label,
                 std::int64_t copy, std::string_view init,
                 const TensorView &piece, float *out);
void fillInitial(const Initialisation &how, std::string_view label,
                 std::int64_t copy, std::string_view init,
                 const TensorView &piece, double *out);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_TRAINING_INITIAL_VALUES_H
