//===- then_setting.h - Settings of fused consumers -------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_PLAN_THEN_SETTING_H
#define MTPLAN_RUNTIME_PLAN_THEN_SETTING_H

namespace mtplan::runtime {

/// Names the fused consumer of an einsum, a sum or a dropout in the same
/// instruction (runtime/backend/kernels.md).
inline constexpr const char *kThen = "then";

/// Is 1 for an einsum if the `sum` of its second operand is in the same
/// instruction, with the same fused consumer.
inline constexpr const char *kBiasGradient = "bias_gradient";

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_THEN_SETTING_H
