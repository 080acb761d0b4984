//===- plan_words.h - Words and limits of the plan format -------*- C++ -*-===//
//
// These are the words of the JSON format, for reading, writing and error
// messages, and the largest numbers that the format allows. The words of an
// enumeration are in the order of its enumerators.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_PLAN_PLAN_WORDS_H
#define MTPLAN_RUNTIME_PLAN_PLAN_WORDS_H

#include <array>
#include <cstdint>
#include <string_view>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

inline constexpr std::array<std::string_view, 5> kElementTypes = {
    "f64", "f32", "f16", "bf16", "i32"};
inline constexpr std::array<std::string_view, 6> kMemoryClasses = {
    "parameters", "optimizer", "gradients", "activations", "workspace", "host"};
inline constexpr std::array<std::string_view, 4> kCollectiveKinds = {
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all"};
inline constexpr std::array<std::string_view, 3> kReductions = {"sum", "max",
                                                                "avg"};
inline constexpr std::array<std::string_view, 4> kInits = {"normal", "residual",
                                                           "ones", "zeros"};
inline constexpr std::array<std::string_view, 3> kInputDims = {
    "batch", "sequence", "other"};

constexpr std::string_view wordOf(ElementType type) {
  return kElementTypes[static_cast<std::size_t>(type)];
}
constexpr std::string_view wordOf(MemoryClass memoryClass) {
  return kMemoryClasses[static_cast<std::size_t>(memoryClass)];
}
constexpr std::string_view wordOf(CollectiveKind kind) {
  return kCollectiveKinds[static_cast<std::size_t>(kind)];
}
constexpr std::string_view wordOf(Reduction reduction) {
  return kReductions[static_cast<std::size_t>(reduction)];
}

/// Returns whether a collective of this kind uses Collective::reduction.
constexpr bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::allReduce ||
         kind == CollectiveKind::reduceScatter;
}
/// Returns whether a collective of this kind uses Collective::gathered.
constexpr bool gathers(CollectiveKind kind) {
  return kind == CollectiveKind::allGather || kind == CollectiveKind::allToAll;
}
/// Returns whether a collective of this kind uses Collective::scattered.
constexpr bool scatters(CollectiveKind kind) {
  return kind == CollectiveKind::reduceScatter ||
         kind == CollectiveKind::allToAll;
}

//===----------------------------------------------------------------------===//
// Limits of numbers
//
// The limits are far above today's machines. They are low enough that sums and
// products in checks fit 64 bits and that every check terminates.
//===----------------------------------------------------------------------===//

inline constexpr std::int64_t kMostRanks = 1 << 20;
inline constexpr std::int64_t kMostBytes = std::int64_t{1} << 48;
inline constexpr std::int64_t kMostElements = std::int64_t{1}
                                              << 40; ///< elements per tensor
inline constexpr std::int64_t kMostCopies = 1 << 16; ///< layers per segment
inline constexpr std::int64_t kMostMicroBatches = 1 << 20;
inline constexpr std::int64_t kMostPieces = 1 << 20; ///< entries * slots
inline constexpr std::int64_t kMostIndex = INT32_MAX;
inline constexpr std::int64_t kMostSamples = std::int64_t{1} << 40;

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_PLAN_WORDS_H
