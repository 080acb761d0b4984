//===- strict_json.cpp - Text that claims to be a plan's JSON -------------===//

#include <algorithm>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/plan/node_json.h"
#include "runtime/plan/plan_json.h"

namespace mtplan::runtime {

using nlohmann::ordered_json;
using Event = nlohmann::detail::parse_event_t;

namespace {

// Objects and arrays within each other, and members of an object. No plan comes
// near; what does would take its time to be refused otherwise.
constexpr std::size_t kMaxDepth = 32;
constexpr std::size_t kMostMembers = 256;

// "line:column" of the byte at `offset`, both counted from 1.
std::string placeOf(const std::string &text, std::size_t offset) {
  offset = std::min(offset, text.size());
  auto end = text.begin() + static_cast<std::ptrdiff_t>(offset);
  auto line = 1 + std::count(text.begin(), end, '\n');
  std::size_t newline =
      offset == 0 ? std::string::npos : text.rfind('\n', offset - 1);
  std::size_t column =
      newline == std::string::npos ? offset + 1 : offset - newline;
  return std::to_string(line) + ':' + std::to_string(column);
}

// The library's sentence without its number and its own idea of the place.
std::string reasonOf(std::string what) {
  if (std::size_t end = what.find("] "); end != std::string::npos)
    what.erase(0, end + 2);
  if (what.starts_with("parse error at"))
    if (std::size_t end = what.find(": "); end != std::string::npos)
      what.erase(0, end + 2);
  constexpr std::size_t kLongest = 160;
  return what.size() > kLongest ? what.substr(0, kLongest) + "..." : what;
}

// Follows the parser, to refuse before it is held what is too deep, too wide or
// said twice.
class Watch {
public:
  void operator()(Event event, const ordered_json &value) {
    switch (event) {
    case Event::key:
      return addKey(value.get_ref<const std::string &>());
    case Event::object_start:
    case Event::array_start:
      if (open.size() == kMaxDepth)
        throw PlanError(pointer() + ": nested deeper than " +
                        std::to_string(kMaxDepth) + " levels");
      open.push_back({event == Event::array_start, {}, 0});
      return;
    case Event::object_end:
    case Event::array_end:
      open.pop_back();
      [[fallthrough]];
    case Event::value:
      if (!open.empty())
        ++open.back().elements;
    }
  }

private:
  struct Container {
    bool isArray;
    std::vector<std::string> keys;
    std::size_t elements; // that are complete
  };

  void addKey(const std::string &key) {
    std::vector<std::string> &keys = open.back().keys;
    bool twice = std::ranges::find(keys, key) != keys.end();
    keys.push_back(key);
    if (twice)
      throw PlanError(pointer() + ": the key is given twice");
    if (keys.size() > kMostMembers)
      throw PlanError(pointer() + ": an object has at most " +
                      std::to_string(kMostMembers) + " members");
  }

  std::string pointer() const {
    std::string text;
    for (const Container &one : open)
      if (one.isArray || !one.keys.empty())
        text += '/' + (one.isArray ? std::to_string(one.elements)
                                   : pointerToken(one.keys.back()));
    return text;
  }

  std::vector<Container> open;
};

} // namespace

ordered_json parseStrictly(const std::string &text) {
  Watch watch;
  try {
    return ordered_json::parse(
        text, [&](int, Event event, const ordered_json &value) {
          watch(event, value);
          return true;
        });
  } catch (const ordered_json::parse_error &error) {
    throw PlanError(placeOf(text, error.byte == 0 ? 0 : error.byte - 1) + ": " +
                    reasonOf(error.what()));
  } catch (const ordered_json::exception &error) {
    throw PlanError(": " + reasonOf(error.what()));
  }
}

} // namespace mtplan::runtime
