//===- plan_limits.h - Limits of the numbers in a plan ----------*- C++ -*-===//
//
// The limits are far above any machine of today, and low enough that no sum or
// product of a check exceeds 64 bits and that every check ends.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_PLAN_PLAN_LIMITS_H
#define MTPLAN_RUNTIME_PLAN_PLAN_LIMITS_H

#include <cstdint>

namespace mtplan::runtime {

inline constexpr std::int64_t kMostRanks = 1 << 20;
inline constexpr std::int64_t kMostBytes = std::int64_t{1} << 48;
inline constexpr std::int64_t kMostElements = std::int64_t{1}
                                              << 40; ///< of a tensor
inline constexpr std::int64_t kMostCopies = 1 << 16; ///< of a segment
inline constexpr std::int64_t kMostMicroBatches = 1 << 20;
inline constexpr std::int64_t kMostPieces = 1 << 20; ///< entries * slots
inline constexpr std::int64_t kMostIndex = INT32_MAX;
inline constexpr std::int64_t kMostSamples = std::int64_t{1} << 40;

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_PLAN_LIMITS_H
