//===- fields.cpp - Typed access to a JSON object ---------------*- C++ -*-===//

#include "ir/model/fields.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "llvm/ADT/StringExtras.h"

namespace mtplan::ir {

namespace {

// Number of single-character edits from one word to the other, twice; another
// case is half an edit.
std::size_t editDistance(std::string_view from, std::string_view to) {
  auto change = [](char a, char b) -> std::size_t {
    return a == b ? 0 : llvm::toLower(a) == llvm::toLower(b) ? 1 : 2;
  };
  std::vector<std::size_t> row(to.size() + 1);
  for (std::size_t j = 0; j <= to.size(); ++j)
    row[j] = 2 * j;
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] += 2;
    for (std::size_t j = 0; j < to.size(); ++j) {
      std::size_t changed = diagonal + change(from[i], to[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 2, row[j + 1] + 2});
    }
  }
  return row.back();
}

std::string shortNumber(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

} // namespace

void Findings::error(std::string_view pointer, std::string_view what) {
  std::string line = file + ": ";
  line.append(pointer).append(pointer.empty() ? "" : ": ").append(what);
  errors.push_back(std::move(line));
}

std::string listOf(const std::vector<std::string> &names) {
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0)
      list += i + 1 == names.size() ? " and " : ", ";
    list += names[i];
  }
  return list;
}

std::vector<std::string> nearestFirst(std::string_view word,
                                      std::vector<std::string> names) {
  // The distance is quadratic; a name that long resembles nothing anyway.
  word = word.substr(0, 64);
  // The rule of nearestTo, in planner/ and in runtime/plan/: who typed the
  // beginning of a long name meant that. A test holds them together.
  auto distance = [&](const std::string &name) {
    return std::pair(!name.starts_with(word), editDistance(word, name));
  };
  std::ranges::stable_sort(names, {}, distance);
  return names;
}

std::string unknownName(std::string_view what, std::string_view word,
                        const std::vector<std::string> &names) {
  std::string shown(word.substr(0, 64));
  std::string text = "unknown ";
  text.append(what).append(" \"").append(shown).append("\"");
  if (!names.empty())
    text += "; nearest first, known are " + listOf(nearestFirst(word, names));
  return text;
}

bool Fields::has(std::string_view key) { return value(key) != nullptr; }

const JsonValue *Fields::value(std::string_view key, bool required) {
  asked.emplace(key);
  const JsonValue *found = object.find(key);
  if (found && found->kind == JsonValue::Kind::null)
    found = nullptr;
  if (!found && required)
    error(key, "is missing");
  return found;
}

std::optional<std::int64_t> Fields::size(std::string_view key,
                                         std::int64_t limit) {
  if (!value(key, /*required=*/true))
    return std::nullopt;
  return sizeIfAny(key, limit);
}

std::optional<std::int64_t> Fields::sizeIfAny(std::string_view key,
                                              std::int64_t limit) {
  const JsonValue *found = value(key);
  if (!found)
    return std::nullopt;
  if (found->kind == JsonValue::Kind::number && found->integer &&
      *found->integer >= 1 && *found->integer <= limit)
    return found->integer;
  error(key, "must be an integer from 1 to " + std::to_string(limit) +
                 ", but is " + found->describe());
  return std::nullopt;
}

double Fields::number(std::string_view key, double fallback, double low,
                      double high) {
  const JsonValue *found = value(key);
  if (!found)
    return fallback;
  if (found->kind == JsonValue::Kind::number && found->number >= low &&
      found->number < high)
    return found->number;
  error(key, "must be a number, at least " + shortNumber(low) + " and below " +
                 shortNumber(high) + ", but is " + found->describe());
  return fallback;
}

bool Fields::flag(std::string_view key, bool fallback) {
  const JsonValue *found = value(key);
  if (!found)
    return fallback;
  if (found->kind == JsonValue::Kind::boolean)
    return found->boolean;
  error(key, "must be true or false, but is " + found->describe());
  return fallback;
}

std::string Fields::text(std::string_view key, std::string_view fallback) {
  const JsonValue *found = value(key);
  if (!found)
    return std::string(fallback);
  if (found->kind == JsonValue::Kind::string)
    return found->string;
  error(key, "must be a string, but is " + found->describe());
  return std::string(fallback);
}

std::string Fields::name(std::string_view key) {
  const JsonValue *found = value(key, /*required=*/true);
  if (!found)
    return "";
  if (found->kind == JsonValue::Kind::string && !found->string.empty())
    return found->string;
  error(key, "must be a string that is not empty, but is " + found->describe());
  return "";
}

std::vector<std::string> Fields::texts(std::string_view key, bool required) {
  const JsonValue *found = value(key, required);
  if (!found)
    return {};
  if (found->kind != JsonValue::Kind::array) {
    error(key, "must be an array of strings, but is " + found->describe());
    return {};
  }
  std::vector<std::string> strings;
  for (std::size_t i = 0; i < found->items.size(); ++i) {
    const JsonValue &item = found->items[i];
    if (item.kind == JsonValue::Kind::string)
      strings.push_back(item.string);
    else
      findings.error(at(key) + '/' + std::to_string(i),
                     "must be a string, but is " + item.describe());
  }
  return strings;
}

void Fields::ignore(const std::vector<std::string> &keys) {
  asked.insert(keys.begin(), keys.end());
}

std::vector<std::string> Fields::unread() const {
  std::vector<std::string> keys;
  for (const auto &[key, ignored] : object.members)
    if (asked.find(key) == asked.end())
      keys.push_back(key);
  return keys;
}

void Fields::noteUnread() {
  if (std::vector<std::string> keys = unread(); !keys.empty())
    findings.note("ignored: " + listOf(keys));
}

void Fields::refuseUnread() {
  std::vector<std::string> known(asked.begin(), asked.end());
  for (const std::string &key : unread())
    error(key, unknownName("key", key, known));
}

} // namespace mtplan::ir
