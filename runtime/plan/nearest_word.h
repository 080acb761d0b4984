//===- nearest_word.h - Words that there are --------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_PLAN_NEAREST_WORD_H
#define MTPLAN_RUNTIME_PLAN_NEAREST_WORD_H

#include <span>
#include <string>
#include <string_view>

namespace mtplan::runtime {

/// Of `candidates`, at least one, the one that fewest letters keep from `word`,
/// the first of several; of those that begin with it, if there are any. Another
/// case is half another letter.
std::string_view nearestTo(std::string_view word,
                           std::span<const std::string_view> candidates);

/// "a, b or c", with `last` for " or ".
std::string listed(std::span<const std::string_view> words,
                   std::string_view last = " or ");

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_NEAREST_WORD_H
