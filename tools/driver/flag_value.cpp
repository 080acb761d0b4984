//===- flag_value.cpp - Types of flags' values ----------------------------===//

#include "tools/driver/flag_value.h"

#include <charconv>

#include <fmt/format.h>

#include "ir/model/fields.h"

namespace mtplan::tools {

namespace {

constexpr double kMostOfANumber = 1e6;

} // namespace

std::vector<std::string> wordsOf(const std::string &text) {
  std::vector<std::string> words;
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    const std::size_t first = text.find_first_not_of(' ', start);
    words.push_back(first < end ? text.substr(first, end - first)
                                : std::string());
    words.back().erase(words.back().find_last_not_of(' ') + 1);
    start = end + 1;
  }
  return words;
}

std::optional<std::int64_t> countOf(const std::string &text, std::int64_t most,
                                    Faults &faults) {
  std::int64_t value = 0;
  const char *end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, value);
  if (problem == std::errc{} && rest == end && value >= 1 && value <= most)
    return value;
  const bool isNumber = rest == end && problem != std::errc::invalid_argument;
  faults.push_back(fmt::format("must be a whole number from 1 to {}, but is {}",
                               most, isNumber ? text : '"' + text + '"'));
  return std::nullopt;
}

std::vector<int> countsOf(const std::string &text, std::int64_t most,
                          Faults &faults) {
  std::vector<int> numbers;
  for (const std::string &word : wordsOf(text))
    if (auto number = countOf(word, most, faults))
      numbers.push_back(static_cast<int>(*number));
  return numbers;
}

std::optional<double> numberOf(const std::string &text, Faults &faults) {
  double value = 0;
  const char *end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, value);
  // The comparison with 0 also rejects NaN.
  if (problem == std::errc{} && rest == end && value > 0 &&
      value <= kMostOfANumber)
    return value;
  faults.push_back("must be a number above 0 and at most 1000000, but is \"" +
                   text + '"');
  return std::nullopt;
}

std::optional<std::size_t> positionOf(const std::string &word, const char *what,
                                      const std::vector<std::string> &known,
                                      Faults &faults) {
  const auto found = std::ranges::find(known, word);
  if (found != known.end())
    return static_cast<std::size_t>(found - known.begin());
  faults.push_back(ir::unknownName(what, word, known));
  return std::nullopt;
}

FlagValue anyText(std::string PlanRequest::*member) {
  return {FlagKind::word, [=](const std::string &text, PlanRequest &request,
                              Faults &) { request.*member = text; }};
}

FlagValue fileName(std::string PlanRequest::*member) {
  return {FlagKind::text,
          [=](const std::string &text, PlanRequest &request, Faults &faults) {
            if (text.empty())
              faults.emplace_back("names no file");
            request.*member = text;
          }};
}

FlagValue isGiven(bool PlanRequest::*member) {
  return {FlagKind::onOrAbsent, [=](const std::string &, PlanRequest &request,
                                    Faults &) { request.*member = true; }};
}

FlagValue count(std::optional<std::int64_t> PlanRequest::*member,
                std::int64_t most) {
  return {FlagKind::count,
          [=](const std::string &text, PlanRequest &request, Faults &faults) {
            if (auto value = countOf(text, most, faults))
              request.*member = value;
          }};
}

FlagValue count(std::int64_t PlanRequest::*member, std::int64_t most) {
  return {FlagKind::count,
          [=](const std::string &text, PlanRequest &request, Faults &faults) {
            if (auto value = countOf(text, most, faults))
              request.*member = *value;
          }};
}

FlagValue counts(planner::Choices<int> PlanRequest::*member,
                 std::int64_t most) {
  return {FlagKind::counts,
          [=](const std::string &text, PlanRequest &request, Faults &faults) {
            std::vector<int> &only = (request.*member).only;
            if (text == "any")
              return only.clear();
            if (auto chosen = distinct(countsOf(text, most, faults));
                !chosen.empty())
              only = std::move(chosen);
          }};
}

FlagValue number(double PlanRequest::*member) {
  return {FlagKind::number,
          [=](const std::string &text, PlanRequest &request, Faults &faults) {
            if (auto value = numberOf(text, faults))
              request.*member = *value;
          }};
}

} // namespace mtplan::tools
