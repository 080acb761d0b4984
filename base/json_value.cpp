//===- json_value.cpp - Questions about one JSON value --------------------===//

#include "base/json_value.h"

#include <nlohmann/json.hpp>

#include "base/nearest_word.h"

namespace mtplan::base {

std::string described(const Json &value) {
  if (value.is_object())
    return "an object";
  if (value.is_array())
    return "an array";
  const std::string text =
      value.dump(-1, ' ', false, Json::error_handler_t::replace);
  constexpr std::size_t kLongest = 60;
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

std::optional<std::int64_t> wholeNumber(const Json &value, std::int64_t least,
                                        std::int64_t most) {
  // The library keeps what is above the largest signed number as unsigned.
  const bool isSigned =
      value.is_number_integer() &&
      (!value.is_number_unsigned() ||
       value.get<std::uint64_t>() <= std::uint64_t{INT64_MAX});
  if (!isSigned)
    return std::nullopt;
  const auto number = value.get<std::int64_t>();
  if (number < least || number > most)
    return std::nullopt;
  return number;
}

std::string mustBe(std::string_view kind, const Json &value) {
  return "must be " + std::string(kind) + ", got " + described(value);
}

std::string mustBeWholeNumber(std::int64_t least, std::int64_t most,
                              const Json &value) {
  return mustBe("a whole number from " + std::to_string(least) + " to " +
                    std::to_string(most),
                value);
}

std::string mustBeOneOf(std::span<const std::string_view> words,
                        const Json &value) {
  std::string list;
  for (const std::string_view word : words)
    ((list += list.empty() ? "one of \"" : ", \"") += word) += '"';
  std::string fault = mustBe(list, value);
  if (value.is_string())
    ((fault += "; the nearest is \"") +=
     nearestTo(value.get_ref<const std::string &>(), words)) += '"';
  return fault;
}

std::string unknownKey(std::string_view key,
                       std::span<const std::string_view> known) {
  return "unknown key; the nearest valid key is \"" +
         std::string(nearestTo(key, known)) + '"';
}

} // namespace mtplan::base
