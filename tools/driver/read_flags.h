//===- read_flags.h - From typed flags to a request -------------*- C++ -*-===//
//
// For each type of value, a function returns the FlagValue that reads such
// values. Faults quote the text and list the allowed values.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_DRIVER_READ_FLAGS_H
#define MTPLAN_TOOLS_DRIVER_READ_FLAGS_H

#include <algorithm>

#include "tools/driver/flags.h"

namespace mtplan::tools {

using Faults = std::vector<std::string>;

/// Checks every flag and the combination of flags. Errors begin with the flag,
/// or with its location in a file.
PlanRequest readFlags(const Flags &flags, std::vector<std::string> &errors);

/// Returns `flags` with the settings in `words`, such as "tp=8 zero=1". A
/// setting replaces a flag of the same name. A name is a flag about the plan,
/// without "--". Errors begin with `by`, the flag that has the words as its
/// value.
Flags withWords(Flags flags, const std::string &words, const std::string &by,
                std::vector<std::string> &errors);

/// Returns the words between commas, without surrounding blanks.
std::vector<std::string> wordsOf(const std::string &text);

/// Removes repetitions, and keeps the order of first appearance.
template <typename Value>
std::vector<Value> distinct(const std::vector<Value> &all) {
  std::vector<Value> first;
  for (const Value &value : all)
    if (std::ranges::find(first, value) == first.end())
      first.push_back(value);
  return first;
}

std::optional<std::int64_t> countOf(const std::string &text, std::int64_t most,
                                    Faults &faults);

std::vector<int> countsOf(const std::string &text, std::int64_t most,
                          Faults &faults);

/// Reads a number above 0 and at most a million; 0 is allowed if `mayBeZero` is
/// set.
std::optional<double> numberOf(const std::string &text, Faults &faults,
                               bool mayBeZero = false);

/// Returns the index of `word` in `known`. An unknown word is a fault. The
/// fault lists the known words, with the most similar word first.
std::optional<std::size_t> positionOf(const std::string &word, const char *what,
                                      const std::vector<std::string> &known,
                                      Faults &faults);

/// Returns the value with the name `word`. `what` is the kind of value, for
/// faults.
template <typename Values>
auto namedBy(const std::string &word, const char *what, const Values &values,
             Faults &faults)
    -> std::optional<std::decay_t<decltype(values[0])>> {
  std::vector<std::string> known;
  known.reserve(std::size(values));
  for (const auto &value : values)
    known.emplace_back(nameOf(value));
  if (auto position = positionOf(word, what, known, faults))
    return values[*position];
  return std::nullopt;
}

FlagValue anyText(std::string PlanRequest::*member);
FlagValue fileName(std::string PlanRequest::*member);
/// The flag has no value; the member becomes true if the flag is given.
FlagValue isGiven(bool PlanRequest::*member);

/// The value is a whole number from 1 to `most`.
template <typename Member>
FlagValue count(Member PlanRequest::*member, std::int64_t most) {
  return {FlagKind::count,
          [=](const std::string &text, PlanRequest &request, Faults &faults) {
            if (auto value = countOf(text, most, faults))
              request.*member = *value;
          }};
}

/// The value lists whole numbers for the search to choose from, or is "any".
/// \param zero  word for the number 0; null if there is none
FlagValue counts(planner::Choices<int> PlanRequest::*member, std::int64_t most,
                 const char *zero = nullptr);

/// The value is a number above 0; 0 is allowed if `mayBeZero` is set. The
/// member becomes the number times `unit`.
FlagValue number(double PlanRequest::*member, double unit = 1,
                 bool mayBeZero = false);
template <typename Quantity>
FlagValue number(std::optional<Quantity> PlanRequest::*member,
                 double unit = 1) {
  return {FlagKind::number,
          [=](const std::string &text, PlanRequest &request, Faults &faults) {
            if (auto value = numberOf(text, faults))
              request.*member = Quantity{*value * unit};
          }};
}

/// The value is one of `values`; `what` is the kind of value, for messages.
template <typename Member, typename Value, std::size_t N>
FlagValue word(Member PlanRequest::*member, const char *what,
               const Value (&values)[N]) {
  std::vector<Value> all(values, values + N);
  return {FlagKind::word,
          [=](const std::string &text, PlanRequest &request, Faults &faults) {
            if (auto value = namedBy(text, what, all, faults))
              request.*member = *value;
          }};
}

/// The value lists some of `values` for the search to choose from, or is "any".
template <typename Choice, typename Value, std::size_t N>
FlagValue words(planner::Choices<Choice> PlanRequest::*member, const char *what,
                const Value (&values)[N], FlagKind kind = FlagKind::words) {
  std::vector<Value> all(values, values + N);
  return {kind,
          [=](const std::string &text, PlanRequest &request, Faults &faults) {
            std::vector<Choice> &only = (request.*member).only;
            if (text == "any")
              return only.clear();
            std::vector<Choice> chosen;
            for (const std::string &word : distinct(wordsOf(text)))
              if (auto value = namedBy(word, what, all, faults))
                chosen.push_back(Choice(*value));
            if (!chosen.empty())
              only = std::move(chosen);
          }};
}

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_READ_FLAGS_H
