//===- model_files.cpp - The tensors of a model ---------------------------===//

#include "runtime/safetensors/model_files.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <set>

#include "base/json_events.h"
#include "runtime/data/files.h"

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

/// Returns whether a name is a file name without a folder.
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
    if (text.back() != '[' && text.back() != '{') // has elements
      text += newLine(path.size());
    text += isArray ? ']' : '}';
  }

private:
  [[noreturn]] void refuse(const JsonPath &path, const std::string &needs,
                           const std::string &is) const {
    const std::string place = path.empty() ? "" : shown(path) + ": ";
    throw DataError(file, place + "needs " + needs + ", is " + is);
  }

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

  /// Reads the total size. Some writers store it as a floating-point number.
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

  /// Returns the JSON text of the member of "metadata" that contains `path`.
  /// First appends the separator of the value at `path` to this text: a comma,
  /// a newline and the key.
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

/// Formats an object at depth 1 whose values are already JSON text.
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

namespace {

namespace fs = std::filesystem;

constexpr const char *kOneFile = "model.safetensors";
constexpr const char *kIndexFile = "model.safetensors.index.json";

std::string inQuotes(std::string_view name) {
  return "'" + base::shown(name) + "'";
}

bool isThere(const fs::path &path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// Returns the last part of an error message. It names the file in the folder
/// that is most likely the model.
std::string nearestIn(const fs::path &folder) {
  std::set<std::string> files, pickles;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    const fs::path name = at->path().filename();
    if (name.extension() == ".safetensors")
      files.insert(name.string());
    else if (name.extension() == ".bin" || name.extension() == ".pt" ||
             name.extension() == ".pth")
      pickles.insert(name.string());
  }
  if (files.size() == 1)
    return "; name its " + inQuotes(*files.begin()) + " itself";
  if (!files.empty())
    return "; it has " + std::to_string(files.size()) +
           " .safetensors files, such as " + inQuotes(*files.begin()) +
           ", but no index";
  if (!pickles.empty())
    return "; " + inQuotes(*pickles.begin()) +
           " is of another format: save the model as safetensors";
  return "";
}

ModelTensor placeOf(const ModelFile &file, const SafeTensor &tensor) {
  return {&file.bytes, &tensor, file.header.dataStart + tensor.begin};
}

} // namespace

ModelFiles ModelFiles::open(const std::string &path) {
  const fs::path named(path);
  std::error_code ignored;
  if (!fs::is_directory(named, ignored))
    return named.extension() == ".json" ? openShards(path) : openOne(path);
  // If the folder has both model.safetensors and an index, model.safetensors is
  // used, as in other tools.
  if (isThere(named / kOneFile))
    return openOne(named / kOneFile);
  if (isThere(named / kIndexFile))
    return openShards(named / kIndexFile);
  throw DataError(path, std::string("has neither ") + kOneFile + " nor " +
                            kIndexFile + nearestIn(named));
}

ModelFiles ModelFiles::openOne(const std::string &path) {
  ModelFiles model;
  model.opened.push_back(std::make_unique<const ModelFile>(path));
  const ModelFile &file = *model.opened[0];
  for (const SafeTensor &tensor : file.header.tensors)
    model.places.emplace(tensor.name, placeOf(file, tensor));
  return model;
}

ModelFiles ModelFiles::openShards(const std::string &indexPath) {
  ModelFiles model;
  model.shards = readIndex(indexPath);
  model.openShardFiles(indexPath);

  // Maps a tensor's name to the names of all files that contain the tensor.
  std::map<std::string_view, std::vector<std::string>> holders;
  for (const auto &file : model.opened)
    for (const SafeTensor &tensor : file->header.tensors)
      holders[tensor.name].push_back(
          fs::path(file->bytes.path()).filename().string());

  const auto &weightMap = model.shards->weightMap;
  auto refuse = [&](std::string_view tensor, const std::string &why) {
    throw DataError(indexPath, "tensor " + inQuotes(tensor) + " " + why);
  };
  for (const auto &[name, file] : weightMap) {
    const auto found = holders.find(name);
    if (found == holders.end())
      refuse(name,
             "is in none of the files; it should be in " + inQuotes(file));
    const std::vector<std::string> &in = found->second;
    if (in.size() > 1)
      refuse(name, "is in " + inQuotes(in[0]) + " and in " + inQuotes(in[1]) +
                       "; it should be in " + inQuotes(file) + " alone");
    if (in[0] != file)
      refuse(name, "is in " + inQuotes(in[0]) + "; it should be in " +
                       inQuotes(file));
  }
  for (const auto &[name, in] : holders)
    if (!weightMap.contains(std::string(name)))
      refuse(name, "is in " + inQuotes(in[0]) + ", but not in weight_map");

  for (const auto &file : model.opened)
    for (const SafeTensor &tensor : file->header.tensors)
      model.places.emplace(tensor.name, placeOf(*file, tensor));
  return model;
}

void ModelFiles::openShardFiles(const std::string &indexPath) {
  std::map<std::string, std::string> firstTensor; // key: file name
  for (const auto &[tensor, file] : shards->weightMap)
    firstTensor.emplace(file, tensor);
  const fs::path folder = fs::path(indexPath).parent_path();
  for (const auto &[name, tensor] : firstTensor) {
    const fs::path path = folder / name;
    if (!isThere(path))
      throw DataError(indexPath, "file " + inQuotes(name) +
                                     " is missing; it should hold tensor " +
                                     inQuotes(tensor));
    opened.push_back(std::make_unique<const ModelFile>(path));
  }
}

const ModelTensor *ModelFiles::find(std::string_view name) const {
  const auto found = places.find(name);
  return found == places.end() ? nullptr : &found->second;
}

} // namespace mtplan::runtime
