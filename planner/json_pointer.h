//===- json_pointer.h - Where a value stands in a JSON file -----*- C++ -*-===//

#ifndef MTPLAN_PLANNER_JSON_POINTER_H
#define MTPLAN_PLANNER_JSON_POINTER_H

#include <cstddef>
#include <string>

namespace mtplan::planner {

/// Pointer of a member, its key escaped as RFC 6901 asks.
inline std::string childPointer(const std::string &parent,
                                const std::string &key) {
  std::string pointer = parent + '/';
  for (char c : key) {
    if (c == '~')
      pointer += "~0";
    else if (c == '/')
      pointer += "~1";
    else
      pointer += c;
  }
  return pointer;
}

/// Pointer of an array's element.
inline std::string childPointer(const std::string &parent, std::size_t index) {
  return parent + '/' + std::to_string(index);
}

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_JSON_POINTER_H
