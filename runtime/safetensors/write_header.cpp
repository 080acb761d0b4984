//===- write_header.cpp - Types of tensors; writes headers ----------------===//

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <unordered_set>

#include "base/json_events.h"
#include "runtime/safetensors/header.h"

namespace mtplan::runtime {

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

namespace {

struct Type {
  std::string_view name;
  std::int64_t bits;
};

// The types in the order of the reference. Its writer sorts tensors by
// descending type, so that each tensor is aligned to its element size.
constexpr std::array<Type, 22> kTypes{{
    {"BOOL", 8},    {"F4", 4},          {"F6_E2M3", 6},     {"F6_E3M2", 6},
    {"U8", 8},      {"I8", 8},          {"F8_E5M2", 8},     {"F8_E4M3", 8},
    {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
    {"U16", 16},    {"F16", 16},        {"BF16", 16},       {"I32", 32},
    {"U32", 32},    {"F32", 32},        {"C64", 64},        {"F64", 64},
    {"I64", 64},    {"U64", 64},
}};

} // namespace

int rankOf(std::string_view type) {
  const auto *found = std::ranges::find(kTypes, type, &Type::name);
  return found == kTypes.end() ? -1 : static_cast<int>(found - kTypes.begin());
}

std::int64_t bitsOf(std::string_view type) {
  const int rank = rankOf(type);
  return rank < 0 ? 0 : kTypes[static_cast<std::size_t>(rank)].bits;
}

std::int64_t bytesOf(std::string_view type,
                     const std::vector<std::int64_t> &shape) {
  std::string text(type);
  text += " [";
  for (std::size_t i = 0; i < shape.size() && i < 8; ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  text += shape.size() > 8 ? ", ...]" : "]";
  const std::int64_t width = bitsOf(type);
  if (width == 0)
    throw std::invalid_argument("type '" + base::shown(type) +
                                "' is not one of the format's");
  // The reference multiplies in this order, unsigned; another order could
  // overflow for other shapes.
  std::uint64_t bits = 1;
  bool tooMany = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0)
      throw std::invalid_argument(text + " has a negative dimension");
    tooMany |=
        __builtin_mul_overflow(bits, static_cast<std::uint64_t>(extent), &bits);
  }
  tooMany |=
      __builtin_mul_overflow(bits, static_cast<std::uint64_t>(width), &bits);
  if (tooMany)
    throw std::invalid_argument(text + " takes more bits than 64 bits count");
  if (bits % 8 != 0)
    throw std::invalid_argument(text + " takes " + std::to_string(bits) +
                                " bits, no whole number of bytes");
  return static_cast<std::int64_t>(bits / 8);
}

//===----------------------------------------------------------------------===//
// Headers
//===----------------------------------------------------------------------===//

namespace {

std::string quoted(std::string_view text) {
  return base::jsonString(text, base::JsonEscapes::needed);
}

/// Checks the tensors' names, and sets their offsets so that they are
/// contiguous.
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
