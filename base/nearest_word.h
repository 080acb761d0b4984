//===- nearest_word.h - The known word nearest to a typed one ---*- C++ -*-===//

#ifndef MTPLAN_BASE_NEAREST_WORD_H
#define MTPLAN_BASE_NEAREST_WORD_H

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mtplan::base {

/// Returns the candidate nearest to `word`: if some candidates begin with
/// `word`, the nearest of these, else the candidate with the least edit
/// distance. A change of case counts as half an edit. If several candidates are
/// equally near, the first is returned.
/// \param candidates  not empty
std::string_view nearestTo(std::string_view word,
                           std::span<const std::string_view> candidates);
std::string_view nearestTo(std::string_view word,
                           const std::vector<std::string> &candidates);

/// Sorts `candidates` by the rule of nearestTo, the nearest first.
std::vector<std::string> nearestFirst(std::string_view word,
                                      std::vector<std::string> candidates);

/// Joins words as "a, b or c", with `last` in place of " or ".
std::string listed(std::span<const std::string_view> words,
                   std::string_view last = " or ");
std::string listed(const std::vector<std::string> &words,
                   std::string_view last = " or ");

} // namespace mtplan::base

#endif // MTPLAN_BASE_NEAREST_WORD_H
