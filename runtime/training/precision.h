//===- precision.h - The types of a training precision ----------*- C++ -*-===//
//
//             weights  master  moments  gradients  activations  loss scale
//   fp64      f64      -       f64      f64        f64          no
//   fp32      f32      -       f32      f32        f32          no
//   bf16      bf16     f32     f32      f32        bf16         no
//   fp16      f16      f32     f32      f32        f16          dynamic
//
// Gradients are summed over micro-batches in the master's type.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_TRAINING_PRECISION_H
#define MTPLAN_RUNTIME_TRAINING_PRECISION_H

#include <array>
#include <optional>
#include <string_view>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

struct Precision {
  std::string_view name;
  ElementType compute;     ///< weights as computed with, activations
  ElementType master;      ///< weights as updated, moments, gradients
  bool scalesLoss = false; ///< dynamically
  bool hasMaster() const { return compute != master; }
};

inline constexpr std::array<Precision, 4> kPrecisions = {
    {{"fp64", ElementType::f64, ElementType::f64, false},
     {"fp32", ElementType::f32, ElementType::f32, false},
     {"bf16", ElementType::bf16, ElementType::f32, false},
     {"fp16", ElementType::f16, ElementType::f32, true}}};

/// Returns nothing if no precision has this name.
constexpr std::optional<Precision> precisionNamed(std::string_view name) {
  for (const Precision &each : kPrecisions)
    if (each.name == name)
      return each;
  return std::nullopt;
}

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_TRAINING_PRECISION_H
