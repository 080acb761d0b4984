//===- write_header.cpp - The header of a safetensors file, written -------===//

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <unordered_set>

#include "runtime/safetensors/header.h"
#include "runtime/safetensors/header_events.h"

namespace mtplan::runtime {
namespace {

std::string quoted(std::string_view text) {
  return base::jsonString(text, base::JsonEscapes::needed);
}

/// Gives each tensor its place behind the one before.
void place(std::vector<SafeTensor> &tensors) {
  std::unordered_set<std::string_view> names;
  std::int64_t next = 0;
  for (SafeTensor &tensor : tensors) {
    auto refuse = [&](const std::string &why) {
      throw std::invalid_argument("tensor '" + base::shown(tensor.name) +
                                  "': " + why);
    };
    if (tensor.name == kMetadataKey)
      refuse("no tensor can be called so");
    if (!names.insert(tensor.name).second)
      refuse("is there twice");
    std::int64_t bytes = 0;
    try {
      bytes = bytesOf(tensor.type, tensor.shape);
    } catch (const std::invalid_argument &error) {
      refuse(error.what());
    }
    tensor.begin = next;
    if (__builtin_add_overflow(next, bytes, &next))
      refuse("ends beyond what 64 bits count");
    tensor.end = next;
  }
}

void append(std::string &json, const SafeTensor &tensor) {
  json +=
      quoted(tensor.name) + ":{\"dtype\":\"" + tensor.type + "\",\"shape\":[";
  for (std::size_t i = 0; i < tensor.shape.size(); ++i)
    json += (i == 0 ? "" : ",") + std::to_string(tensor.shape[i]);
  json += "],\"data_offsets\":[" + std::to_string(tensor.begin) + ',' +
          std::to_string(tensor.end) + "]}";
}

} // namespace

std::string layOut(SafetensorsHeader &header) {
  place(header.tensors);
  std::string json = "{";
  if (!header.metadata.empty()) {
    json += quoted(kMetadataKey) + ":{";
    for (const auto &[key, value] : header.metadata)
      json += quoted(key) + ':' + quoted(value) + ',';
    json.back() = '}';
    json += ',';
  }
  for (const SafeTensor &tensor : header.tensors) {
    append(json, tensor);
    json += ',';
  }
  if (json.size() > 1)
    json.pop_back();
  json += '}';
  json.resize((json.size() + 7) / 8 * 8, ' ');
  if (json.size() > static_cast<std::size_t>(kMostHeaderBytes))
    throw std::invalid_argument(
        "a header of " + std::to_string(json.size()) + " bytes, at most " +
        std::to_string(kMostHeaderBytes) + ": use more files");

  const std::uint64_t length = json.size();
  std::string bytes(reinterpret_cast<const char *>(&length), sizeof(length));
  bytes += json;
  header.dataStart = static_cast<std::int64_t>(bytes.size());
  return bytes;
}

void sortAsReference(std::vector<SafeTensor> &tensors) {
  std::ranges::sort(tensors, [](const SafeTensor &a, const SafeTensor &b) {
    const int left = rankOf(a.type), right = rankOf(b.type);
    return left != right ? left > right : a.name < b.name;
  });
}

} // namespace mtplan::runtime
