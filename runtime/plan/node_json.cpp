//===- node_json.cpp - A value of a JSON file, and where it stands --------===//

#include "runtime/plan/node_json.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "runtime/plan/nearest_word.h"
#include "runtime/plan/plan_json.h"
#include "runtime/plan/plan_limits.h"

namespace mtplan::runtime {

using nlohmann::ordered_json;

namespace {

// A value short enough for a message.
std::string shown(const ordered_json &value) {
  if (value.is_object())
    return "an object";
  if (value.is_array())
    return "an array";
  std::string text =
      value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  constexpr std::size_t kLongest = 60;
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

} // namespace

std::string pointerToken(std::string_view key) {
  std::string token;
  for (char c : key)
    token += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return token;
}

std::string Node::pointer() const {
  if (!parent)
    return "";
  return parent->pointer() + '/' +
         (key.data() ? pointerToken(key) : std::to_string(index));
}

void Node::fail(const std::string &what) const {
  const std::string where = pointer();
  throw PlanError(where.empty() ? what : where + ": " + what);
}

void Node::mustBe(const std::string &kind) const {
  fail("must be " + kind + ", got " + shown(*json));
}

std::int64_t Node::integer(std::int64_t least, std::int64_t most) const {
  // What is above the largest signed number is kept as unsigned.
  bool fits = json->is_number_integer() &&
              (!json->is_number_unsigned() ||
               json->get<std::uint64_t>() <= std::uint64_t{INT64_MAX});
  if (fits && json->get<std::int64_t>() >= least &&
      json->get<std::int64_t>() <= most)
    return json->get<std::int64_t>();
  mustBe("a whole number from " + std::to_string(least) + " to " +
         std::to_string(most));
}

int Node::count(std::int64_t least, std::int64_t most) const {
  return static_cast<int>(integer(least, std::min(most, kMostIndex)));
}

bool Node::boolean() const {
  if (!json->is_boolean())
    mustBe("true or false");
  return json->get<bool>();
}

std::string Node::text() const {
  if (!json->is_string())
    mustBe("a string");
  return json->get<std::string>();
}

std::size_t Node::oneOf(std::span<const std::string_view> words) const {
  std::string list;
  for (std::string_view word : words)
    ((list += list.empty() ? "one of \"" : ", \"") += word) += '"';
  if (!json->is_string())
    mustBe(list);
  const auto &given = json->get_ref<const std::string &>();
  auto found = std::ranges::find(words, given);
  if (found == words.end())
    fail("must be " + list + ", got " + shown(*json) + "; the nearest is \"" +
         std::string(nearestTo(given, words)) + '"');
  return static_cast<std::size_t>(found - words.begin());
}

std::size_t Node::size() const {
  if (!json->is_array())
    mustBe("an array");
  return json->size();
}

Node Node::at(std::size_t place) const {
  return {(*json)[place], *this, place};
}

MemberNodes::MemberNodes(const Node &object,
                         std::span<const std::string_view> names)
    : node(object) {
  if (!object.value().is_object())
    object.mustBe("an object");
  for (const auto &[key, value] : object.value().items())
    if (std::ranges::find(names, key) == names.end())
      Node(value, object, key)
          .fail("unknown key; the nearest valid key is \"" +
                std::string(nearestTo(key, names)) + '"');
}

bool MemberNodes::has(std::string_view name) const {
  return node.value().contains(name);
}

std::optional<Node> MemberNodes::find(std::string_view name) const {
  auto member = node.value().find(name);
  if (member == node.value().end())
    return std::nullopt;
  return Node(*member, node, name);
}

Node MemberNodes::need(std::string_view name) const {
  std::optional<Node> member = find(name);
  if (!member)
    throw PlanError(node.pointer() + '/' + pointerToken(name) + ": is missing");
  return *member;
}

int MemberNodes::index(std::string_view name) const {
  return need(name).count(0, kMostIndex);
}

int MemberNodes::index(std::string_view name, int otherwise) const {
  return has(name) ? index(name) : otherwise;
}

int MemberNodes::count(std::string_view name, std::int64_t most) const {
  return need(name).count(1, most);
}

int MemberNodes::count(std::string_view name, std::int64_t most,
                       int otherwise) const {
  return has(name) ? count(name, most) : otherwise;
}

std::int64_t MemberNodes::integer(std::string_view name, std::int64_t least,
                                  std::int64_t most) const {
  return need(name).integer(least, most);
}

} // namespace mtplan::runtime
