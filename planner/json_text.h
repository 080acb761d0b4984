//===- json_text.h - Text that claims to be JSON ----------------*- C++ -*-===//
//
// The one place where foreign text becomes a JSON value. Stricter than the
// format: a key given twice is an error and so is deep nesting, because both
// are how a file says something else than its author believes.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_JSON_TEXT_H
#define MTPLAN_PLANNER_JSON_TEXT_H

#include <stdexcept>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace mtplan::planner {

/// Arrays and objects within each other, at most.
inline constexpr int kMaxJsonDepth = 64;

/// Text that is not acceptable JSON. what() starts with "line:column: ", or,
/// for keys given twice, is one line per key that starts with its JSON pointer.
class JsonTextError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Complexity: linear in the text; the depth of the call stack does not follow
/// the depth of the text.
/// \throws JsonTextError
nlohmann::json parseJsonText(const std::string &text);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_JSON_TEXT_H
