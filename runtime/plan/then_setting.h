//===- then_setting.h - What follows a kernel -------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_PLAN_THEN_SETTING_H
#define MTPLAN_RUNTIME_PLAN_THEN_SETTING_H

namespace mtplan::runtime {

/// Of an einsum, a sum or a dropout: who takes its result, in the same
/// instruction (runtime/backend/kernels.md).
inline constexpr const char *kThen = "then";

/// Of an einsum: 1 if the `sum` of its second operand is in the same
/// instruction, with the same after it.
inline constexpr const char *kBiasGradient = "bias_gradient";

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_THEN_SETTING_H
