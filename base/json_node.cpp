//===- json_node.cpp - Reads a JSON value up to its first fault -----------===//

#include "base/json_node.h"

#include <algorithm>
#include <limits>

#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace mtplan::base {

namespace {

constexpr std::int64_t kMostIndex = std::numeric_limits<int>::max();

} // namespace

std::string JsonNode::pointer() const {
  if (!parent)
    return "";
  return key.data() ? childPointer(parent->pointer(), key)
                    : childPointer(parent->pointer(), index);
}

void JsonNode::fail(const std::string &fault) const {
  throw JsonError(pointer(), fault);
}

void JsonNode::mustBe(const std::string &kind) const {
  fail(base::mustBe(kind, *json));
}

std::int64_t JsonNode::integer(std::int64_t least, std::int64_t most) const {
  if (const auto number = wholeNumber(*json, least, most))
    return *number;
  fail(mustBeWholeNumber(least, most, *json));
}

int JsonNode::count(std::int64_t least, std::int64_t most) const {
  return static_cast<int>(integer(least, std::min(most, kMostIndex)));
}

double JsonNode::number() const {
  if (!json->is_number())
    mustBe("a number");
  return json->get<double>();
}

bool JsonNode::boolean() const {
  if (!json->is_boolean())
    mustBe("true or false");
  return json->get<bool>();
}

std::string JsonNode::text() const {
  if (!json->is_string())
    mustBe("a string");
  return json->get<std::string>();
}

std::size_t JsonNode::oneOf(std::span<const std::string_view> words) const {
  if (json->is_string()) {
    const auto &given = json->get_ref<const std::string &>();
    if (const auto found = std::ranges::find(words, given);
        found != words.end())
      return static_cast<std::size_t>(found - words.begin());
  }
  fail(mustBeOneOf(words, *json));
}

std::size_t JsonNode::size() const {
  if (!json->is_array())
    mustBe("an array");
  return json->size();
}

JsonNode JsonNode::at(std::size_t place) const {
  return {(*json)[place], *this, place};
}

JsonMembers::JsonMembers(const JsonNode &object,
                         std::span<const std::string_view> names)
    : node(object) {
  if (!object.value().is_object())
    object.mustBe("an object");
  for (const auto &[key, value] : object.value().items())
    if (std::ranges::find(names, key) == names.end())
      JsonNode(value, object, key).fail(unknownKey(key, names));
}

bool JsonMembers::has(std::string_view name) const {
  return node.value().contains(name);
}

std::optional<JsonNode> JsonMembers::find(std::string_view name) const {
  const auto member = node.value().find(name);
  if (member == node.value().end())
    return std::nullopt;
  return JsonNode(*member, node, name);
}

JsonNode JsonMembers::need(std::string_view name) const {
  const std::optional<JsonNode> member = find(name);
  if (!member)
    throw JsonError(childPointer(node.pointer(), name), "is missing");
  return *member;
}

int JsonMembers::index(std::string_view name) const {
  return need(name).count(0, kMostIndex);
}

int JsonMembers::index(std::string_view name, int otherwise) const {
  return has(name) ? index(name) : otherwise;
}

int JsonMembers::count(std::string_view name, std::int64_t most) const {
  return need(name).count(1, most);
}

int JsonMembers::count(std::string_view name, std::int64_t most,
                       int otherwise) const {
  return has(name) ? count(name, most) : otherwise;
}

std::int64_t JsonMembers::integer(std::string_view name, std::int64_t least,
                                  std::int64_t most) const {
  return need(name).integer(least, most);
}

} // namespace mtplan::base
