//===- attributes.h - An operator's attributes by name ----------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_REFERENCE_ATTRIBUTES_H
#define MTPLAN_RUNTIME_REFERENCE_ATTRIBUTES_H

#include <cstdint>
#include <map>
#include <string>
#include <variant>

namespace mtplan::runtime::reference {

/// The attributes of an operator, named as in the IR. A flag is 0 or 1, and an
/// enumeration is its word.
class Attributes {
public:
  using Value = std::variant<std::int64_t, double, std::string>;

  void set(const std::string &name, Value value) {
    values[name] = std::move(value);
  }

  /// These return `absent` where the operator has no such attribute. They throw
  /// std::bad_variant_access where it has one of another type.
  std::int64_t integer(const std::string &name, std::int64_t absent) const {
    return valueOf(name, absent);
  }
  double number(const std::string &name, double absent) const {
    return valueOf(name, absent);
  }
  std::string text(const std::string &name) const {
    return valueOf(name, std::string());
  }
  bool flag(const std::string &name) const { return integer(name, 0) != 0; }

private:
  template <typename T> T valueOf(const std::string &name, T absent) const {
    const auto found = values.find(name);
    return found == values.end() ? absent : std::get<T>(found->second);
  }

  std::map<std::string, Value> values;
};

} // namespace mtplan::runtime::reference

#endif // MTPLAN_RUNTIME_REFERENCE_ATTRIBUTES_H
