//===- json_pointer.h - Names a value of a JSON file ------------*- C++ -*-===//

#ifndef MTPLAN_BASE_JSON_POINTER_H
#define MTPLAN_BASE_JSON_POINTER_H

#include <cstddef>
#include <string>
#include <string_view>

namespace mtplan::base {

/// Escapes a key as one token of a JSON pointer (RFC 6901).
inline std::string pointerToken(std::string_view key) {
  std::string token;
  for (const char c : key)
    if (c == '~')
      token += "~0";
    else if (c == '/')
      token += "~1";
    else
      token += c;
  return token;
}

/// Returns the pointer of an object's member.
inline std::string childPointer(const std::string &parent,
                                std::string_view key) {
  return parent + '/' + pointerToken(key);
}

/// Returns the pointer of an array's element.
inline std::string childPointer(const std::string &parent, std::size_t index) {
  return parent + '/' + std::to_string(index);
}

} // namespace mtplan::base

#endif // MTPLAN_BASE_JSON_POINTER_H
