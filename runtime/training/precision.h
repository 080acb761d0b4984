//===- precision.h - The types of a training precision ----------*- C++ -*-===//
//
//             weights  master  moments  gradients  activations  loss scale
//   fp64      f64      -       f64      f64        f64          no
//   fp32      f32      -       f32      f32        f32          no
//   bf16      bf16     f32     f32      f32        bf16         no
//   fp16      f16      f32     f32      f32        f16          dynamic
//
// Gradients are accumulated over micro-batches in the type of column
// `gradients`.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_TRAINING_PRECISION_H
#define MTPLAN_RUNTIME_TRAINING_PRECISION_H

#include <array>
#include <optional>
#include <string_view>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// A row of the table.
struct Precision {
  std::string_view name;
  ElementType compute;     ///< of weights in kernels, and of activations
  ElementType master;      ///< of updated weights, moments, gradients
  bool scalesLoss = false; ///< with a dynamic loss scale
  bool hasMaster() const { return compute != master; }
};

inline constexpr std::array<Precision, 4> kPrecisions = {
    {{"fp64", ElementType::f64, ElementType::f64, false},
     {"fp32", ElementType::f32, ElementType::f32, false},
     {"bf16", ElementType::bf16, ElementType::f32, false},
     {"fp16", ElementType::f16, ElementType::f32, true}}};

/// Returns the precision with this name; none if there is none.
constexpr std::optional<Precision> precisionNamed(std::string_view name) {
  for (const Precision &each : kPrecisions)
    if (each.name == name)
      return each;
  return std::nullopt;
}

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_TRAINING_PRECISION_H
