//===- strict_json.cpp - JSON that someone else wrote, event by event -----===//

#include "runtime/safetensors/strict_json.h"

#include <set>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

#include "runtime/data/data_error.h"

namespace mtplan::runtime {
namespace {

using nlohmann::json;

// Where serde_json, the reference's parser, gives up.
constexpr std::size_t kMaxDepth = 127;
constexpr std::size_t kLongestShown = 80;
constexpr std::size_t kFirstShown = 4; // and the last, of a path

// The library's sentence without its number, its idea of the place and what it
// read last, which may be the whole file.
std::string reasonOf(std::string what) {
  if (const std::size_t end = what.find("] "); end != std::string::npos)
    what.erase(0, end + 2);
  if (what.starts_with("parse error at"))
    if (const std::size_t end = what.find(": "); end != std::string::npos)
      what.erase(0, end + 2);
  if (const std::size_t end = what.find("; last read");
      end != std::string::npos)
    what.erase(end);
  return shown(what);
}

// Tells `events` what the parser finds, once it is known to be allowed.
class Watch final : public nlohmann::json_sax<json> {
public:
  Watch(const std::string &theFile, std::int64_t theFirstByte,
        JsonEvents &theEvents)
      : file(theFile), firstByte(theFirstByte), events(theEvents) {}

  bool null() override { return scalar(JsonScalar::Kind::null, "null"); }
  bool boolean(bool value) override {
    return scalar(JsonScalar::Kind::boolean, value ? "true" : "false");
  }
  // Only what begins with a minus comes here: "-0" is 0 by then.
  bool number_integer(std::int64_t value) override {
    return scalar(JsonScalar::Kind::number,
                  value == 0 ? "-0" : std::to_string(value));
  }
  bool number_unsigned(std::uint64_t value) override {
    return scalar(JsonScalar::Kind::whole, std::to_string(value), value);
  }
  bool number_float(double, const std::string &spelled) override {
    return scalar(JsonScalar::Kind::number, spelled);
  }
  bool string(std::string &value) override {
    return scalar(JsonScalar::Kind::string, value);
  }
  bool binary(json::binary_t &) override { return false; } // not in text

  bool start_object(std::size_t) override { return open(false); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(true); }
  bool end_array() override { return close(); }

  bool key(std::string &name) override {
    path.back().key = name;
    if (!keys.back().insert(std::move(name)).second)
      throw DataError(file, shown(path) + ": the key is given twice");
    return true;
  }

  bool parse_error(std::size_t position, const std::string &,
                   const json::exception &error) override {
    // Counted from 1, and one more at the end.
    const auto byte =
        static_cast<std::int64_t>(position == 0 ? 0 : position - 1);
    throw DataError(file, firstByte + byte,
                    "is no JSON: " + reasonOf(error.what()));
  }

private:
  bool scalar(JsonScalar::Kind kind, std::string_view text,
              std::uint64_t whole = 0) {
    events.scalar(path, {kind, whole, text});
    return countElement();
  }

  bool open(bool isArray) {
    if (path.size() == kMaxDepth)
      throw DataError(file, shown(path) + ": nested deeper than " +
                                std::to_string(kMaxDepth) + " levels");
    events.open(path, isArray);
    path.push_back({isArray, {}, 0});
    keys.emplace_back();
    return true;
  }

  bool close() {
    const bool isArray = path.back().isArray;
    path.pop_back();
    keys.pop_back();
    events.close(path, isArray);
    return countElement();
  }

  bool countElement() {
    if (!path.empty())
      ++path.back().elements;
    return true;
  }

  const std::string &file;
  const std::int64_t firstByte;
  JsonEvents &events;
  JsonPath path;
  std::vector<std::set<std::string>> keys; // of each level of the path
};

} // namespace

void readStrictly(const std::string &file, std::string_view text,
                  std::int64_t firstByte, JsonEvents &events) {
  // The library takes a zero byte for the end of its input.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos)
    throw DataError(file, firstByte + static_cast<std::int64_t>(zero),
                    "is no JSON: a zero byte");
  Watch watch(file, firstByte, events);
  json::sax_parse(text.begin(), text.end(), &watch);
}

std::string shown(std::string_view text) {
  const bool cut = text.size() > kLongestShown;
  std::string line = json(std::string(text.substr(0, kLongestShown)))
                         .dump(-1, ' ', false, json::error_handler_t::replace);
  line = line.substr(1, line.size() - 2);
  return cut ? line + "..." : line;
}

std::string shown(const JsonPath &path) {
  std::string pointer;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const JsonLevel &level = path[i];
    if (i >= kFirstShown && i + 1 < path.size())
      pointer += i == kFirstShown ? "/..." : "";
    else
      pointer += '/' + (level.isArray ? std::to_string(level.elements)
                                      : shown(level.key));
  }
  return pointer;
}

std::string shown(const JsonScalar &value) {
  if (value.kind == JsonScalar::Kind::string)
    return "the text '" + shown(value.text) + "'";
  return shown(value.text);
}

std::string jsonString(std::string_view text, JsonEscapes escapes) {
  try {
    return json(text).dump(-1, ' ', escapes == JsonEscapes::ascii);
  } catch (const json::type_error &) {
    throw std::invalid_argument("'" + shown(text) + "' is not UTF-8");
  }
}

} // namespace mtplan::runtime
