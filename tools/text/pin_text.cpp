//===- pin_text.cpp - Pins as they are typed ------------------------------===//

#include "tools/text/pin_text.h"

#include <algorithm>
#include <optional>

#include "base/nearest_word.h"

namespace mtplan::tools {

using planner::PinText;
using planner::Split;

namespace {

std::string quoted(const PinText &pin) { return "pin \"" + pin.text + '"'; }

std::string trimmed(const std::string &text) {
  std::size_t first = text.find_first_not_of(" \t");
  if (first == text.npos)
    return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

const std::vector<std::string> &allWords() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> names;
    for (int split = 0; split <= static_cast<int>(Split::hidden); ++split)
      names.emplace_back(nameOf(static_cast<Split>(split)));
    names.emplace_back("replicated");
    names.emplace_back("partial");
    return names;
  }();
  return words;
}

bool parseEntries(const std::string &inner, PinText &pin,
                  std::vector<std::string> &errors) {
  static const std::vector<std::string> axes = {"tp", "tp2"};
  std::size_t start = 0;
  std::vector<std::string> used;
  while (start <= inner.size()) {
    std::size_t end = std::min(inner.find(',', start), inner.size());
    std::string entry = trimmed(inner.substr(start, end - start));
    if (entry == "-")
      entry.clear();
    for (const std::string &axis : entry.empty()
                                       ? std::vector<std::string>{}
                                       : planner::partsOfValue(entry)) {
      if (std::ranges::find(axes, axis) == axes.end()) {
        errors.push_back(quoted(pin) + ": entry " +
                         std::to_string(pin.entries.size() + 1) + " is \"" +
                         entry +
                         "\"; each is \"tp\" or \"-\" or, with two tensor "
                         "axes, \"tp2\" or \"tp+tp2\"");
        return false;
      }
      used.push_back(axis);
    }
    pin.entries.push_back(entry);
    start = end + 1;
  }
  for (const std::string &axis : axes)
    if (const auto split = std::ranges::count(used, axis); split > 1) {
      errors.push_back(quoted(pin) + ": " + axis +
                       " can split one dimension, not " +
                       std::to_string(split));
      return false;
    }
  return true;
}

std::optional<PinText> parsePin(const std::string &text,
                                std::vector<std::string> &errors) {
  PinText pin{text, {}, {}, {}};
  std::size_t equals = text.find('=');
  if (equals == text.npos) {
    errors.push_back(quoted(pin) + ": has no \"=\"; write PATTERN=VALUE, as in "
                                   "h.*.mlp.fc1=column");
    return std::nullopt;
  }
  pin.pattern = trimmed(text.substr(0, equals));
  std::string value = trimmed(text.substr(equals + 1));
  if (pin.pattern.empty() || value.empty()) {
    errors.push_back(quoted(pin) + ": has nothing " +
                     (pin.pattern.empty() ? "before" : "after") + " \"=\"");
    return std::nullopt;
  }
  if (value.front() == '[') {
    if (value.back() != ']' || value.size() < 2) {
      errors.push_back(quoted(pin) + ": \"[\" is not closed");
      return std::nullopt;
    }
    if (!parseEntries(value.substr(1, value.size() - 2), pin, errors))
      return std::nullopt;
    return pin;
  }
  const std::vector<std::string> words = planner::partsOfValue(value);
  const auto unknown = std::ranges::find_if(words, [](const std::string &word) {
    return std::ranges::find(allWords(), word) == allWords().end();
  });
  if (words.size() > 2) {
    errors.push_back(quoted(pin) + ": \"" + value + "\" has " +
                     std::to_string(words.size()) +
                     " parts; there are at most two tensor axes");
    return std::nullopt;
  }
  if (unknown != words.end()) {
    errors.push_back(quoted(pin) + ": unknown value \"" + value +
                     "\"; did you mean \"" +
                     std::string(base::nearestTo(*unknown, allWords())) +
                     "\"? known: " + base::listed(allWords(), " and ") +
                     ", or a layout such as [tp,-]");
    return std::nullopt;
  }
  // A value with two equal words has the same meaning as the word alone.
  pin.word = words.front() == words.back() ? words.front() : value;
  return pin;
}

} // namespace

std::vector<PinText> parsePins(const std::vector<std::string> &texts,
                               std::vector<std::string> &errors) {
  std::vector<PinText> pins;
  for (const std::string &text : texts)
    if (std::optional<PinText> pin = parsePin(text, errors))
      pins.push_back(std::move(*pin));
  return pins;
}

} // namespace mtplan::tools
