//===- json_events.h - JSON text, event by event ----------------*- C++ -*-===//
//
// Reads JSON as a stream of events, so that a file that names 100,000 tensors
// needs no tree. The reader rejects text that is not JSON or not UTF-8, nesting
// beyond a limit, and a zero byte, at which some parsers stop. It also rejects
// a key that is given twice, unless repeatedKey() is overridden.
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
  /// A `whole` number has no sign, decimal point or exponent and fits in 64
  /// bits. A `negative` number is an integer with a minus sign, such as "-0",
  /// and fits in 64 bits, too. Every other number is `real`.
  enum class Kind { null, boolean, whole, negative, real, string };
  Kind kind;
  bool boolean = false;
  std::uint64_t whole = 0;
  std::int64_t negative = 0;
  double real = 0.0;
  std::string_view text =
      {}; ///< characters of a string, or spelling of a real number
};

struct JsonLevel {
  bool isArray;
  std::string key;          ///< key of an object's member that is being read
  std::size_t elements = 0; ///< number of elements read completely
};
using JsonPath = std::vector<JsonLevel>;

/// Receives the values that the reader finds. Each value comes with the path of
/// the containers around it.
class JsonEvents {
public:
  virtual ~JsonEvents() = default;
  virtual void scalar(const JsonPath &path, const JsonScalar &value) = 0;
  virtual void open(const JsonPath &path, bool isArray) = 0;
  virtual void close(const JsonPath &path, bool isArray) = 0;
  /// Throws a JsonError that names the key unless a subclass overrides it.
  virtual void repeatedKey(const JsonPath &path);
};

/// Reports text that the reader rejects. `offset` is the byte position of the
/// fault.
class JsonTextFault : public std::runtime_error {
public:
  JsonTextFault(std::size_t theOffset, const std::string &what)
      : std::runtime_error(what), offset(theOffset) {}
  const std::size_t offset;
};

/// Reads all of `text` and calls `events`, whose exceptions are not caught.
/// \param mostDepth  maximum number of nested arrays and objects
/// \throws JsonTextFault
void readJsonEvents(std::string_view text, std::size_t mostDepth,
                    JsonEvents &events);

/// Formats a path for a message as "/a/shape/1". The end of a long name and the
/// middle of a long path are omitted, because either may be as long as the
/// file.
std::string shown(const JsonPath &path);
/// Formats a name or a value for a message on one line. Long text is truncated.
std::string shown(std::string_view text);
/// Formats a scalar for a message: "null", "true", "17" or "the text 'x'".
std::string shown(const JsonScalar &value);
/// Returns the JSON spelling of a scalar, or the characters of a string.
std::string spelled(const JsonScalar &value);

enum class JsonEscapes {
  needed, ///< escapes only what JSON requires, like Rust's serde_json
  ascii,  ///< escapes all but printable ASCII, like Python's json
};
/// Returns a string as JSON, with its quotes.
/// \throws std::invalid_argument if `text` is not UTF-8
std::string jsonString(std::string_view text, JsonEscapes escapes);

} // namespace mtplan::base

#endif // MTPLAN_BASE_JSON_EVENTS_H
