//===- json_value.h - Questions about one JSON value ------------*- C++ -*-===//

#ifndef MTPLAN_BASE_JSON_VALUE_H
#define MTPLAN_BASE_JSON_VALUE_H

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/json_text.h"

namespace mtplan::base {

/// Writes a value for a message; it is cut if it is long.
std::string described(const Json &value);

/// Returns the value if it is written as a whole number from `least` to `most`:
/// 2.0 and 1e3 are not.
std::optional<std::int64_t> wholeNumber(const Json &value, std::int64_t least,
                                        std::int64_t most);

// Faults of a value, as the second half of a message.

/// "must be `kind`, got 17"
std::string mustBe(std::string_view kind, const Json &value);
std::string mustBeWholeNumber(std::int64_t least, std::int64_t most,
                              const Json &value);
/// Names all `words`, and the nearest one if the value is a text.
std::string mustBeOneOf(std::span<const std::string_view> words,
                        const Json &value);
/// \param known  the keys that an object may have, not empty
std::string unknownKey(std::string_view key,
                       std::span<const std::string_view> known);

} // namespace mtplan::base

#endif // MTPLAN_BASE_JSON_VALUE_H
