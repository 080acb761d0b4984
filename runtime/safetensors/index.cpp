//===- index.cpp - Which file of a set holds which tensor -----------------===//

#include "runtime/safetensors/index.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "runtime/data/data_error.h"
#include "runtime/data/mapped_file.h"
#include "runtime/safetensors/read_json.h"

namespace mtplan::runtime {

using base::JsonLevel;
using base::JsonPath;
using base::JsonScalar;
using base::shown;

namespace {

constexpr const char *kMetadata = "metadata";
constexpr const char *kTotalSize = "total_size";
constexpr const char *kWeightMap = "weight_map";

std::string ascii(std::string_view text) {
  return base::jsonString(text, base::JsonEscapes::ascii);
}

std::string newLine(std::size_t depth) {
  return '\n' + std::string(2 * depth, ' ');
}

/// A file of the same folder, and no way out of it.
bool isPlainName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

class IndexEvents final : public base::JsonEvents {
public:
  IndexEvents(const std::string &theFile, ShardIndex &theIndex)
      : file(theFile), index(theIndex) {}

  bool hasWeightMap = false;

  void scalar(const JsonPath &path, const JsonScalar &value) override {
    if (path.empty() || isNamed(path, 1, kMetadata) ||
        isNamed(path, 1, kWeightMap))
      refuse(path, "an object", shown(value));
    if (isNamed(path, 2, kWeightMap))
      addWeight(path, value);
    else if (isTotalSize(path))
      setTotalSize(path, value);
    else if (isOther(path))
      other(path) += value.kind == JsonScalar::Kind::string
                         ? ascii(value.text)
                         : base::spelled(value);
  }

  void open(const JsonPath &path, bool isArray) override {
    const char *is = isArray ? "an array" : "an object";
    if (isArray && (path.empty() || isNamed(path, 1, kMetadata) ||
                    isNamed(path, 1, kWeightMap)))
      refuse(path, "an object", is);
    if (isNamed(path, 2, kWeightMap))
      refuse(path, "the name of a file", is);
    if (isTotalSize(path))
      refuse(path, "a number of bytes", is);
    if (isNamed(path, 1, kWeightMap))
      hasWeightMap = true;
    if (isOther(path))
      other(path) += isArray ? '[' : '{';
  }

  void close(const JsonPath &path, bool isArray) override {
    if (!isOther(path))
      return;
    std::string &text = index.otherMetadata[path[1].key];
    if (text.back() != '[' && text.back() != '{') // else it is empty
      text += newLine(path.size());
    text += isArray ? ']' : '}';
  }

private:
  [[noreturn]] void refuse(const JsonPath &path, const std::string &needs,
                           const std::string &is) const {
    const std::string place = path.empty() ? "" : shown(path) + ": ";
    throw DataError(file, place + "needs " + needs + ", is " + is);
  }

  /// Whether the value at `path` is a member at this depth of that name's.
  static bool isNamed(const JsonPath &path, std::size_t depth,
                      const char *name) {
    return path.size() == depth && path[0].key == name;
  }
  static bool isTotalSize(const JsonPath &path) {
    return isNamed(path, 2, kMetadata) && path[1].key == kTotalSize;
  }
  static bool isOther(const JsonPath &path) {
    return path.size() >= 2 && path[0].key == kMetadata;
  }

  void addWeight(const JsonPath &path, const JsonScalar &value) {
    if (value.kind != JsonScalar::Kind::string)
      refuse(path, "the name of a file", shown(value));
    if (!isPlainName(value.text))
      refuse(path, "the name of a file in the same folder", shown(value));
    index.weightMap.emplace(path[1].key, value.text);
  }

  /// Some writers count in floating point.
  void setTotalSize(const JsonPath &path, const JsonScalar &value) {
    constexpr double kExact = 9007199254740992.0; // 2^53
    using Kind = JsonScalar::Kind;
    if (value.kind == Kind::whole &&
        value.whole <= static_cast<std::uint64_t>(
                           std::numeric_limits<std::int64_t>::max())) {
      index.totalSize = static_cast<std::int64_t>(value.whole);
      return;
    }
    const double number = value.kind == Kind::real ? value.real
                          : value.kind == Kind::negative
                              ? static_cast<double>(value.negative)
                              : -1;
    if (!(number >= 0 && number <= kExact && std::trunc(number) == number))
      refuse(path, "a number of bytes", shown(value));
    index.totalSize = static_cast<std::int64_t>(number);
  }

  /// The text of the member of "metadata", up to where the value at `path`
  /// begins.
  std::string &other(const JsonPath &path) {
    std::string &text = index.otherMetadata[path[1].key];
    if (path.size() == 2)
      return text;
    const JsonLevel &level = path.back();
    text += (level.elements > 0 ? "," : "") + newLine(path.size());
    if (!level.isArray)
      text += ascii(level.key) + ": ";
    return text;
  }

  const std::string &file;
  ShardIndex &index;
};

/// Members whose values are JSON already, as an object at depth 1.
std::string object(const std::map<std::string, std::string> &members) {
  std::string text = "{";
  for (const auto &[name, value] : members)
    text +=
        (text.size() > 1 ? "," : "") + newLine(2) + ascii(name) + ": " + value;
  return text + (members.empty() ? "}" : newLine(1) + "}");
}

} // namespace

ShardIndex parseIndex(const std::string &file, std::string_view text) {
  ShardIndex index;
  IndexEvents events(file, index);
  readFileJson(file, text, 0, events);
  if (!events.hasWeightMap)
    throw DataError(file, "has no weight_map");
  return index;
}

ShardIndex readIndex(const std::string &path) {
  const MappedFile file(path);
  file.confirmSize();
  return parseIndex(path,
                    {reinterpret_cast<const char *>(file.at(0, file.size())),
                     static_cast<std::size_t>(file.size())});
}

std::string writeIndex(const ShardIndex &index) {
  std::map<std::string, std::string> metadata = index.otherMetadata;
  if (index.totalSize >= 0)
    metadata[kTotalSize] = std::to_string(index.totalSize);
  std::map<std::string, std::string> weightMap;
  for (const auto &[tensor, file] : index.weightMap)
    weightMap.emplace_hint(weightMap.end(), tensor, ascii(file));
  return "{" + newLine(1) + ascii(kMetadata) + ": " + object(metadata) + "," +
         newLine(1) + ascii(kWeightMap) + ": " + object(weightMap) + "\n}\n";
}

std::string shardName(std::int64_t number, std::int64_t count) {
  std::array<char, 64> name{};
  std::snprintf(name.data(), name.size(), "model-%05lld-of-%05lld.safetensors",
                static_cast<long long>(number), static_cast<long long>(count));
  return name.data();
}

} // namespace mtplan::runtime
