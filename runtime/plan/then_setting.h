//===- then_setting.h - What follows a kernel -------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_PLAN_THEN_SETTING_H
#define MTPLAN_RUNTIME_PLAN_THEN_SETTING_H

namespace mtplan::runtime {

/// Of an einsum or a dropout: who takes its result, in the same instruction
/// (runtime/backend/kernels.md).
inline constexpr const char *kThen = "then";

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_THEN_SETTING_H
