//===- node_json.h - A value of a JSON file, and where it stands -*- C++
//-*-===//
//
// Reading that stops at the first fault, and knows the fault's JSON pointer
// without making a text of it for every value that is right.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_PLAN_NODE_JSON_H
#define MTPLAN_RUNTIME_PLAN_NODE_JSON_H

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace mtplan::runtime {

/// The value of a text; members keep their order. Stricter than JSON: no key
/// twice in an object, and no deep nesting.
/// \throws PlanError
nlohmann::ordered_json parseStrictly(const std::string &text);

/// One token of a JSON pointer, escaped.
std::string pointerToken(std::string_view key);

/// Refers to the value and to its parent's node, which both outlive it. All
/// methods that read throw PlanError if the value is something else.
class Node {
public:
  explicit Node(const nlohmann::ordered_json &root) : json(&root) {}
  Node(const nlohmann::ordered_json &value, const Node &above,
       std::string_view name)
      : json(&value), parent(&above), key(name) {}
  Node(const nlohmann::ordered_json &value, const Node &above,
       std::size_t place)
      : json(&value), parent(&above), index(place) {}

  const nlohmann::ordered_json &value() const { return *json; }
  std::string pointer() const;
  [[noreturn]] void fail(const std::string &what) const;
  [[noreturn]] void mustBe(const std::string &kind) const;

  std::int64_t integer(std::int64_t least, std::int64_t most) const;
  int count(std::int64_t least, std::int64_t most) const;
  bool boolean() const;
  std::string text() const;
  /// Index of the text among `words`.
  std::size_t oneOf(std::span<const std::string_view> words) const;
  /// Number of elements of an array.
  std::size_t size() const;
  Node at(std::size_t place) const; ///< after size()

  /// What `read` makes of every element.
  template <typename Read> auto list(Read read) const {
    std::vector<decltype(read(*this))> made;
    std::size_t elements = size();
    made.reserve(elements);
    for (std::size_t i = 0; i < elements; ++i)
      made.push_back(read(at(i)));
    return made;
  }

private:
  const nlohmann::ordered_json *json;
  const Node *parent = nullptr; ///< none of the root
  std::string_view key;         ///< of an object's member
  std::size_t index = 0;        ///< of an array's element, if no key
};

/// The members of an object, all of which have one of the names given.
class MemberNodes {
public:
  MemberNodes(const Node &object, std::span<const std::string_view> names);

  bool has(std::string_view name) const;
  std::optional<Node> find(std::string_view name) const;
  Node need(std::string_view name) const;

  /// Whole numbers: index into something, or a count.
  int index(std::string_view name) const;
  int index(std::string_view name, int otherwise) const;
  int count(std::string_view name, std::int64_t most) const;
  int count(std::string_view name, std::int64_t most, int otherwise) const;
  std::int64_t integer(std::string_view name, std::int64_t least,
                       std::int64_t most) const;

private:
  const Node &node;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_NODE_JSON_H
