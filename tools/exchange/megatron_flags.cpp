//===- megatron_flags.cpp - Given options of Megatron-LM ------------------===//

#include "tools/exchange/megatron_flags.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/nearest_word.h"
#include "tools/exchange/megatron_table.h"

namespace mtplan::tools {

namespace {

// Limits of reported errors, and of characters quoted from an unknown word.
constexpr std::size_t kMostComplaints = 50;
constexpr std::size_t kLongestShown = 60;

std::string shown(const std::string &word) {
  return word.size() <= kLongestShown ? word
                                      : word.substr(0, kLongestShown) + "...";
}

bool isOption(const std::string &word) {
  return word.size() > 2 && word.starts_with("--");
}

// Returns the first word of the trainer's options: the word after the first
// script name, unless an option of the trainer comes earlier.
std::size_t scriptEnd(const std::vector<ShellWord> &words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string &word = words[i].text;
    if (word.ends_with(".py"))
      return i + 1;
    MegatronRole role =
        isOption(word) ? megatronOption(std::string_view(word).substr(2)).role
                       : MegatronRole::unknown;
    if (role == MegatronRole::switched || role == MegatronRole::single ||
        role == MegatronRole::many)
      return 0;
  }
  return 0;
}

template <typename Number> std::optional<Number> parsed(std::string_view text) {
  Number number{};
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return number;
}

} // namespace

std::optional<std::int64_t> wholeNumber(std::string_view text) {
  return parsed<std::int64_t>(text);
}

std::optional<double> finiteNumber(std::string_view text) {
  std::optional<double> number = parsed<double>(text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

MegatronFlags::MegatronFlags(const std::vector<ShellWord> &words,
                             std::vector<std::string> &warnings,
                             std::vector<std::string> &notes)
    : errors(notes) {
  std::size_t i = scriptEnd(words);
  for (; i < words.size(); ++i) {
    const ShellWord &word = words[i];
    if (!isOption(word.text)) {
      complain(fmt::format("line {}: \"{}\" belongs to no option", word.line,
                           shown(word.text)));
      continue;
    }
    Use use{word.text.substr(2), {}, word.line};
    std::size_t equals = use.name.find('=');
    if (equals != std::string::npos) {
      use.values.push_back(use.name.substr(equals + 1));
      use.name.resize(equals);
    }
    while (i + 1 < words.size() && !isOption(words[i + 1].text))
      use.values.push_back(words[++i].text);
    take(std::move(use), warnings);
  }
  if (complaints > kMostComplaints)
    errors.push_back(fmt::format("{} more complaints about options",
                                 complaints - kMostComplaints));
}

void MegatronFlags::complain(std::string message) {
  if (++complaints <= kMostComplaints)
    errors.push_back(std::move(message));
}

void MegatronFlags::take(Use use, std::vector<std::string> &warnings) {
  MegatronOption option = megatronOption(use.name);
  std::size_t wanted = option.role == MegatronRole::switched ? 0 : 1;
  switch (option.role) {
  case MegatronRole::irrelevant: {
    std::string line =
        fmt::format("--{}: changes nothing that is planned", use.name);
    if (std::ranges::find(warnings, line) == warnings.end() &&
        warnings.size() < 2 * kMostComplaints)
      warnings.push_back(std::move(line));
    return;
  }
  case MegatronRole::refused:
    complain(fmt::format("--{}: not planned; {}", use.name, option.why));
    return;
  case MegatronRole::unknown:
    complain(complaints < kMostComplaints
                 ? fmt::format("--{}: unknown option; the nearest known one is "
                               "--{}",
                               shown(use.name),
                               base::nearestTo(use.name, megatronNames()))
                 : std::string());
    return;
  case MegatronRole::switched:
  case MegatronRole::single:
    if (use.values.size() != wanted) {
      complain(fmt::format("--{}: takes {}, got {}", use.name,
                           wanted == 0 ? "no value" : "one value",
                           use.values.empty() ? std::string("none")
                           : use.values.size() == 1
                               ? fmt::format("\"{}\"", shown(use.values[0]))
                               : fmt::format("{} values", use.values.size())));
      return;
    }
    break;
  case MegatronRole::many:
    break;
  }
  const Use *before = find(use.name);
  if (!before)
    uses.push_back(std::move(use));
  else if (before->values != use.values)
    complain(fmt::format(
        "--{}: given twice, as {} in line {} and as {} in line {}", use.name,
        shown(fmt::format("{}", fmt::join(before->values, " "))), before->line,
        shown(fmt::format("{}", fmt::join(use.values, " "))), use.line));
}

const MegatronFlags::Use *MegatronFlags::find(std::string_view name) const {
  auto use = std::ranges::find(uses, name, &Use::name);
  return use == uses.end() ? nullptr : &*use;
}

bool MegatronFlags::given(std::string_view name) const {
  return find(name) != nullptr;
}

std::int64_t MegatronFlags::integer(std::string_view name, std::int64_t least,
                                    std::int64_t most,
                                    std::int64_t fallback) const {
  const Use *use = find(name);
  if (!use)
    return fallback;
  std::optional<std::int64_t> value = wholeNumber(use->values[0]);
  if (value && *value >= least && *value <= most)
    return *value;
  errors.push_back(
      fmt::format("--{}: must be a whole number from {} to {}, got \"{}\"",
                  name, least, most, shown(use->values[0])));
  return fallback;
}

double MegatronFlags::number(std::string_view name, double least, double most,
                             double fallback) const {
  const Use *use = find(name);
  if (!use)
    return fallback;
  std::optional<double> value = finiteNumber(use->values[0]);
  if (value && *value >= least && *value <= most)
    return *value;
  errors.push_back(fmt::format("--{}: must be a number from {} to {}, got "
                               "\"{}\"",
                               name, least, most, shown(use->values[0])));
  return fallback;
}

std::string MegatronFlags::word(std::string_view name,
                                const std::vector<std::string> &allowed,
                                const std::string &fallback) const {
  const Use *use = find(name);
  if (!use)
    return fallback;
  if (std::ranges::find(allowed, use->values[0]) != allowed.end())
    return use->values[0];
  errors.push_back(fmt::format("--{}: must be one of {}, got \"{}\"", name,
                               fmt::join(allowed, ", "),
                               shown(use->values[0])));
  return fallback;
}

std::vector<std::string> MegatronFlags::list(std::string_view name) const {
  const Use *use = find(name);
  return use ? use->values : std::vector<std::string>();
}

} // namespace mtplan::tools
