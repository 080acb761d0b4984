//===- json_events.h - JSON text, event by event ----------------*- C++ -*-===//
//
// A file that names 100,000 tensors is read as events, without a tree. The
// reader rejects text that is not JSON. It also rejects a key that is given
// twice, nesting beyond a limit, text that is not UTF-8, and a zero byte, at
// which other parsers stop.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_BASE_JSON_EVENTS_H
#define MTPLAN_BASE_JSON_EVENTS_H

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace mtplan::base {

struct JsonScalar {
  /// A `whole` number has no sign, point or exponent and fits in 64 bits; a
  /// `negative` one has a minus, "-0" included; every other number is `real`.
  enum class Kind { null, boolean, whole, negative, real, string };
  Kind kind;
  bool boolean = false;
  std::uint64_t whole = 0;
  std::int64_t negative = 0;
  double real = 0.0;
  std::string_view text =
      {}; ///< a string's characters; a real as it is spelled
};

/// One open container.
struct JsonLevel {
  bool isArray;
  std::string key;          ///< of an object: the member being read
  std::size_t elements = 0; ///< complete ones before the present one
};
/// The open containers, the outermost first.
using JsonPath = std::vector<JsonLevel>;

/// Receives the values that the reader finds, each with the path that leads to
/// it. For a container that opens or closes, the path does not hold the
/// container itself.
class JsonEvents {
public:
  virtual ~JsonEvents() = default;
  virtual void scalar(const JsonPath &path, const JsonScalar &value) = 0;
  virtual void open(const JsonPath &path, bool isArray) = 0;
  virtual void close(const JsonPath &path, bool isArray) = 0;
  /// Throws a JsonError that names the key unless a subclass overrides it.
  virtual void repeatedKey(const JsonPath &path);
};

/// Text that is not acceptable JSON at the byte `offset`.
class JsonTextFault : public std::runtime_error {
public:
  JsonTextFault(std::size_t theOffset, const std::string &what)
      : std::runtime_error(what), offset(theOffset) {}
  const std::size_t offset;
};

/// Reads the whole of `text`. An exception of `events` passes through.
/// \param mostDepth  arrays and objects within each other
/// \throws JsonTextFault
void readJsonEvents(std::string_view text, std::size_t mostDepth,
                    JsonEvents &events);

/// Writes a path for a message as "/a/shape/1". Long names and long paths are
/// cut, because they may be as long as the file.
std::string shown(const JsonPath &path);
/// Writes a name or a value for a message: one line, cut if it is long.
std::string shown(std::string_view text);
/// Writes "null", "true", "17" or "the text 'x'" for a message.
std::string shown(const JsonScalar &value);
/// Writes a scalar that is no string as JSON.
std::string spelled(const JsonScalar &value);

enum class JsonEscapes {
  needed, ///< only what JSON cannot hold otherwise, as Rust's serde_json
  ascii,  ///< everything but printable ASCII, as Python's json
};
/// Writes a string as JSON, with its quotes.
/// \throws std::invalid_argument if `text` is not UTF-8
std::string jsonString(std::string_view text, JsonEscapes escapes);

} // namespace mtplan::base

#endif // MTPLAN_BASE_JSON_EVENTS_H
