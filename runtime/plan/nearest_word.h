//===- nearest_word.h - The word that was meant -----------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_PLAN_NEAREST_WORD_H
#define MTPLAN_RUNTIME_PLAN_NEAREST_WORD_H

#include <span>
#include <string_view>

namespace mtplan::runtime {

/// Of `candidates`, at least one, the one that fewest letters keep from `word`.
std::string_view nearestTo(std::string_view word,
                           std::span<const std::string_view> candidates);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_NEAREST_WORD_H
