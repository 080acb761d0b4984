//===- json_sourced.cpp - Values that say where they are from -------------===//

#include "planner/json_sourced.h"

#include <nlohmann/json.hpp>

#include "base/json_pointer.h"

namespace mtplan::planner {

using json = base::Json;

const json *SourcedFields::value(const std::string &key) {
  const json *quantity = plain.find(key);
  if (!quantity)
    return nullptr;
  std::string pointer = plain.pointerTo(key);
  if (!quantity->is_object()) {
    errors.push_back(pointer + ": needs a source; write {\"value\": ..., "
                               "\"source\": \"where it is from\"}");
    return nullptr;
  }
  base::JsonFields fields(*quantity, pointer, errors);
  const json *inner = fields.need("value");
  const json *source = fields.find("source");
  if (!source || !source->is_string() ||
      source->get<std::string>().find_first_not_of(" \t\r\n") ==
          std::string::npos)
    fields.fail("source", "must say where the number is from");
  fields.rejectOthers();
  return inner;
}

std::optional<double> SourcedFields::optional(const std::string &key,
                                              const base::NumberRange &range) {
  const json *inner = value(key);
  if (!inner)
    return std::nullopt;
  return base::readNumber(*inner, pointerTo(key), range, errors);
}

double SourcedFields::number(const std::string &key,
                             const base::NumberRange &range) {
  plain.need(key);
  return optional(key, range).value_or(range.least);
}

double SourcedFields::number(const std::string &key,
                             const base::NumberRange &range, double fallback) {
  return optional(key, range).value_or(fallback);
}

std::int64_t SourcedFields::count(const std::string &key, std::int64_t most) {
  plain.need(key);
  const json *inner = value(key);
  if (!inner)
    return 1;
  return base::readInteger(*inner, pointerTo(key), 1, most, errors).value_or(1);
}

bool SourcedFields::flag(const std::string &key) {
  plain.need(key);
  if (!value(key))
    return false;
  base::JsonFields fields(*plain.find(key), plain.pointerTo(key), errors);
  return fields.boolean("value", false);
}

std::vector<std::vector<double>>
SourcedFields::rows(const std::string &key,
                    const std::vector<base::NumberRange> &ranges) {
  std::vector<std::vector<double>> result;
  const json *list = value(key);
  if (!list)
    return result;
  std::string where = pointerTo(key);
  auto isRow = [&](const json &row) {
    return row.is_array() && row.size() == ranges.size();
  };
  if (!list->is_array() || list->empty()) {
    errors.push_back(where + ": must be an array, not empty");
    return result;
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    const json &row = (*list)[i];
    std::string pointer = base::childPointer(where, i);
    if (!isRow(row)) {
      errors.push_back(pointer + ": must be an array of " +
                       std::to_string(ranges.size()) + " numbers");
      continue;
    }
    result.emplace_back();
    for (std::size_t c = 0; c < ranges.size(); ++c)
      result.back().push_back(base::readNumber(row[c],
                                               base::childPointer(pointer, c),
                                               ranges[c], errors)
                                  .value_or(1));
  }
  return result;
}

std::vector<std::string> SourcedFields::texts(const std::string &key) {
  std::vector<std::string> result;
  plain.need(key);
  const json *list = value(key);
  if (!list)
    return result;
  if (!list->is_array() || list->empty()) {
    errors.push_back(pointerTo(key) + ": must be an array, not empty");
    return result;
  }
  for (std::size_t i = 0; i < list->size(); ++i)
    if (const json &text = (*list)[i]; text.is_string())
      result.push_back(text.get<std::string>());
    else
      errors.push_back(base::childPointer(pointerTo(key), i) +
                       ": must be a string");
  return result;
}

std::vector<double> SourcedFields::numbers(const std::string &key,
                                           const base::NumberRange &range) {
  std::vector<double> result;
  const json *list = value(key);
  if (!list)
    return result;
  std::string where = pointerTo(key);
  if (!list->is_array() || list->empty()) {
    errors.push_back(where + ": must be an array of numbers, not empty");
    return result;
  }
  for (std::size_t i = 0; i < list->size(); ++i)
    result.push_back(base::readNumber((*list)[i], base::childPointer(where, i),
                                      range, errors)
                         .value_or(1));
  return result;
}

} // namespace mtplan::planner
