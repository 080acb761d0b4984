//===- strict_json.h - JSON that someone else wrote, event by event -*- C++
//-*-//
//
// A header names 100,000 tensors and an index as many: they are read as events,
// without a tree. Refused beside what is no JSON: a key given twice in an
// object, nesting deeper than the reference reader goes, text that is not
// UTF-8, and a zero byte, at which other parsers stop.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_SAFETENSORS_STRICT_JSON_H
#define MTPLAN_RUNTIME_SAFETENSORS_STRICT_JSON_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mtplan::runtime {

struct JsonScalar {
  /// A `whole` is a number without sign, point or exponent that 64 bits hold.
  enum class Kind { null, boolean, whole, number, string };
  Kind kind;
  std::uint64_t whole = 0;
  /// A string's characters; of any other the JSON, as it was spelled.
  std::string_view text;
};

/// The containers that are open, the outermost first.
struct JsonLevel {
  bool isArray;
  std::string key;          ///< the last of an object
  std::size_t elements = 0; ///< complete ones before the present one
};
using JsonPath = std::vector<JsonLevel>;

/// What is met. The path leads to it: of a container that opens or closes it
/// does not hold the container itself.
class JsonEvents {
public:
  virtual ~JsonEvents() = default;
  virtual void scalar(const JsonPath &path, const JsonScalar &value) = 0;
  virtual void open(const JsonPath &path, bool isArray) = 0;
  virtual void close(const JsonPath &path, bool isArray) = 0;
};

/// Reads the whole of `text`, which begins at `firstByte` of `file`.
/// \throws DataError, beside what `events` throws
void readStrictly(const std::string &file, std::string_view text,
                  std::int64_t firstByte, JsonEvents &events);

/// "/a/shape/1" for a message; long names and many levels are cut.
std::string shown(const JsonPath &path);
/// A name or a value for a message: one line, cut if it is long.
std::string shown(std::string_view text);
/// "null", "true", "a string", ... for a message.
std::string shown(const JsonScalar &value);

enum class JsonEscapes {
  needed, ///< as Rust's serde_json: what JSON cannot hold otherwise
  ascii,  ///< as Python's json: everything but printable ASCII
};
/// With its quotes.
/// \throws std::invalid_argument if `text` is not UTF-8
std::string jsonString(std::string_view text, JsonEscapes escapes);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_SAFETENSORS_STRICT_JSON_H
