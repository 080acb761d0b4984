//===- json_node.h - Reads a JSON value up to its first fault ---*- C++ -*-===//
//
// This reader throws JsonError at the first fault. A JSON pointer is built only
// for the fault and not for every value, so that files of megabytes are read
// quickly. The reader of json_fields.h reports all faults of a file.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_BASE_JSON_NODE_H
#define MTPLAN_BASE_JSON_NODE_H

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_text.h"

namespace mtplan::base {

/// Refers to one value and knows its position in the file. The value and the
/// node of its parent must outlive the node. Reading methods other than at()
/// throw JsonError if the value has the wrong kind or is out of range.
class JsonNode {
public:
  explicit JsonNode(const Json &root) : json(&root) {}
  JsonNode(const Json &value, const JsonNode &above, std::string_view name)
      : json(&value), parent(&above), key(name) {}
  JsonNode(const Json &value, const JsonNode &above, std::size_t place)
      : json(&value), parent(&above), index(place) {}

  const Json &value() const { return *json; }
  std::string pointer() const;
  [[noreturn]] void fail(const std::string &fault) const;
  [[noreturn]] void mustBe(const std::string &kind) const;

  std::int64_t integer(std::int64_t least, std::int64_t most) const;
  /// Returns an integer that fits in an int.
  int count(std::int64_t least, std::int64_t most) const;
  double number() const;
  bool boolean() const;
  std::string text() const;
  std::size_t oneOf(std::span<const std::string_view> words) const;
  std::size_t size() const;
  /// Returns element number `place` of an array; `place` must be below size().
  JsonNode at(std::size_t place) const;

  template <typename Read> auto list(Read read) const {
    std::vector<decltype(read(*this))> made;
    const std::size_t elements = size();
    made.reserve(elements);
    for (std::size_t i = 0; i < elements; ++i)
      made.push_back(read(at(i)));
    return made;
  }

private:
  const Json *json;
  const JsonNode *parent = nullptr; ///< null for the root
  std::string_view key;             ///< name of the value in an object
  std::size_t index = 0;            ///< index of the value in an array
};

class JsonMembers {
public:
  /// \throws JsonError if the value is not an object or has a member that is
  /// not in `names`
  JsonMembers(const JsonNode &object, std::span<const std::string_view> names);

  bool has(std::string_view name) const;
  std::optional<JsonNode> find(std::string_view name) const;
  JsonNode need(std::string_view name) const;

  /// An index must be at least 0, a count must be from 1 to `most`, and an
  /// integer must be from `least` to `most`. If the member is missing, these
  /// methods return `otherwise` or, without such a parameter, throw JsonError.
  int index(std::string_view name) const;
  int index(std::string_view name, int otherwise) const;
  int count(std::string_view name, std::int64_t most) const;
  int count(std::string_view name, std::int64_t most, int otherwise) const;
  std::int64_t integer(std::string_view name, std::int64_t least,
                       std::int64_t most) const;

private:
  const JsonNode &node;
};

} // namespace mtplan::base

#endif // MTPLAN_BASE_JSON_NODE_H
