//===- plan_words.h - Names of enumerators in a plan ------------*- C++ -*-===//
//
// Names are in the order of the enumerators, for both directions and for
// messages.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_PLAN_PLAN_WORDS_H
#define MTPLAN_RUNTIME_PLAN_PLAN_WORDS_H

#include <array>
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

/// Returns whether a call of this kind reads Collective::reduction; likewise
/// the following functions.
constexpr bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::allReduce ||
         kind == CollectiveKind::reduceScatter;
}
constexpr bool gathers(CollectiveKind kind) {
  return kind == CollectiveKind::allGather || kind == CollectiveKind::allToAll;
}
constexpr bool scatters(CollectiveKind kind) {
  return kind == CollectiveKind::reduceScatter ||
         kind == CollectiveKind::allToAll;
}

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_PLAN_WORDS_H
