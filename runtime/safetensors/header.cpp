//===- header.cpp - Reads and writes headers of safetensors files ---------===//

#include "runtime/safetensors/header.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <tuple>
#include <unordered_set>

#include "base/json_events.h"
#include "base/json_text.h"
#include "runtime/data/files.h"

namespace mtplan::runtime {

void readFileJson(const std::string &file, std::string_view text,
                  std::int64_t firstByte, base::JsonEvents &events) {
  // This is the nesting limit of serde_json, the JSON parser of the reference.
  constexpr std::size_t kMostDepth = 127;
  try {
    base::readJsonEvents(text, kMostDepth, events);
  } catch (const base::JsonTextFault &fault) {
    throw DataError(file, firstByte + static_cast<std::int64_t>(fault.offset),
                    fault.what());
  } catch (const base::JsonError &error) {
    throw DataError(file, error.what());
  }
}

using base::JsonPath;
using base::JsonScalar;
using base::shown;

namespace {

constexpr const char *kContainers[] = {"an object", "an array"};

// Reads the members of each tensor. checkTensor later checks whether they are
// consistent. Unknown members are skipped, as in the reference implementation.
class HeaderEvents final : public base::JsonEvents {
public:
  HeaderEvents(const std::string &theFile, SafetensorsHeader &theHeader)
      : file(theFile), header(theHeader) {}

  void scalar(const JsonPath &path, const JsonScalar &value) override {
    using Kind = JsonScalar::Kind;
    if (path.size() < 2) {
      const bool noMetadata = path.size() == 1 && path[0].key == kMetadataKey &&
                              value.kind == Kind::null;
      if (!noMetadata)
        refuse(path, kContainers[0], shown(value));
      return;
    }
    const Part part = partOf(path);
    if (part == Part::unknown)
      return;
    if (part == Part::metadata || part == Part::type) {
      if (value.kind != Kind::string)
        refuse(path, "a text", shown(value));
      if (part == Part::metadata) {
        header.metadata.emplace(path[1].key, value.text);
      } else {
        hasType = true;
        header.tensors.back().type = value.text;
      }
      return;
    }
    if (path.size() == 2)
      refuse(path, kContainers[1], shown(value));
    number(path, part, value);
  }

  void open(const JsonPath &path, bool isArray) override {
    const char *is = kContainers[isArray ? 1 : 0];
    if (path.size() < 2) {
      if (isArray)
        refuse(path, kContainers[0], is);
      if (path.size() == 1 && path[0].key != kMetadataKey) {
        header.tensors.emplace_back().name = path[0].key;
        hasType = hasShape = false;
        offsets = -1;
      }
      return;
    }
    const Part part = partOf(path);
    if (part == Part::unknown)
      return;
    if (part == Part::metadata || part == Part::type)
      refuse(path, "a text", is);
    if (path.size() > 2)
      refuse(path, "a whole number", is);
    if (!isArray)
      refuse(path, kContainers[1], is);
    if (part == Part::shape)
      hasShape = true;
    else
      offsets = 0;
  }

  void close(const JsonPath &path, bool) override {
    if (path.size() == 1 && path[0].key != kMetadataKey)
      finishTensor(path);
  }

private:
  enum class Part { metadata, type, shape, offsets, unknown };

  static Part partOf(const JsonPath &path) {
    if (path[0].key == kMetadataKey)
      return Part::metadata;
    const std::string &member = path[1].key;
    return member == "dtype"          ? Part::type
           : member == "shape"        ? Part::shape
           : member == "data_offsets" ? Part::offsets
                                      : Part::unknown;
  }

  [[noreturn]] void refuse(const JsonPath &path, const std::string &needs,
                           const std::string &is) const {
    throw DataError(file, shown(path) + ": needs " + needs + ", is " + is);
  }

  void number(const JsonPath &path, Part part, const JsonScalar &value) {
    constexpr auto kMost =
        static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (value.kind != JsonScalar::Kind::whole || value.whole > kMost)
      refuse(path, "a whole number from 0 to " + std::to_string(kMost),
             shown(value));
    const auto whole = static_cast<std::int64_t>(value.whole);
    SafeTensor &tensor = header.tensors.back();
    if (part == Part::shape) {
      tensor.shape.push_back(whole);
      return;
    }
    if (offsets == 2)
      throw DataError(file, shown(path) + ": data_offsets are 2 numbers");
    (offsets++ == 0 ? tensor.begin : tensor.end) = whole;
  }

  void finishTensor(const JsonPath &path) const {
    const char *missing = !hasType      ? "dtype"
                          : !hasShape   ? "shape"
                          : offsets < 0 ? "data_offsets"
                                        : nullptr;
    if (missing)
      throw DataError(file, shown(path) + ": has no " + missing);
    if (offsets != 2)
      throw DataError(file, shown(path) +
                                ": data_offsets are 2 numbers, here " +
                                std::to_string(offsets));
  }

  const std::string &file;
  SafetensorsHeader &header;
  // These members record what has been read of the current tensor.
  bool hasType = false, hasShape = false;
  int offsets = -1; ///< number of offsets; -1: no data_offsets yet
};

} // namespace

namespace {

constexpr std::int64_t kLengthBytes = 8;

std::string text(std::int64_t number) { return std::to_string(number); }

/// Returns the JSON of a header after checking its length and its first byte.
std::string_view headerText(const std::string &file,
                            std::span<const std::byte> start,
                            std::int64_t size) {
  const auto given = static_cast<std::int64_t>(start.size());
  if (size < kLengthBytes)
    throw DataError(file, "has " + text(size) +
                              " bytes, a header begins with "
                              "the 8 of its length");
  if (given < kLengthBytes)
    throw DataError(file, 0,
                    "the length of the header is 8 bytes, given are " +
                        text(given));
  std::uint64_t length = 0;
  std::memcpy(&length, start.data(), sizeof(length));
  if (length > static_cast<std::uint64_t>(kMostHeaderBytes))
    throw DataError(file, 0,
                    "a header of " + std::to_string(length) +
                        " bytes, at most " + text(kMostHeaderBytes));
  const std::int64_t end = kLengthBytes + static_cast<std::int64_t>(length);
  if (end > size)
    throw DataError(file, 0,
                    "a header of " + text(end - kLengthBytes) +
                        " bytes ends at " + text(end) + ", the file at " +
                        text(size));
  if (end > given)
    throw DataError(file, 0,
                    "the header ends at " + text(end) + ", given are " +
                        text(given) + " bytes");
  const std::string_view json(
      reinterpret_cast<const char *>(start.data()) + kLengthBytes, length);
  if (!json.starts_with('{'))
    throw DataError(file, kLengthBytes,
                    json.empty()
                        ? "the header is empty, needs '{'"
                        : "the header begins with '" +
                              shown(json.substr(0, 1)) + "', needs '{'");
  return json;
}

/// Checks that a tensor's offsets match its type and shape, and that the tensor
/// begins where the previous tensor, `before`, ends.
void checkTensor(const std::string &file, const SafeTensor &tensor,
                 const SafeTensor *before) {
  auto refuse = [&](const std::string &why) {
    throw DataError(file, "tensor '" + shown(tensor.name) + "': " + why);
  };
  if (tensor.end < tensor.begin)
    refuse("data_offsets [" + text(tensor.begin) + ", " + text(tensor.end) +
           "] end before they begin");
  const std::int64_t free = before ? before->end : 0;
  if (tensor.begin != free) {
    const std::string place =
        before ? "'" + shown(before->name) + "' before it ends at " + text(free)
               : "the first begins at 0";
    refuse("begins at byte " + text(tensor.begin) + " of the data, " + place +
           (tensor.begin < free ? ": they overlap"
                                : ": " + text(tensor.begin - free) +
                                      " bytes belong to no tensor"));
  }
  std::int64_t needed = 0;
  try {
    needed = bytesOf(tensor.type, tensor.shape);
  } catch (const std::invalid_argument &error) {
    refuse(error.what());
  }
  if (needed != tensor.bytes())
    refuse("its type and shape take " + text(needed) +
           " bytes, its data_offsets [" + text(tensor.begin) + ", " +
           text(tensor.end) + "] are " + text(tensor.bytes()));
}

} // namespace

const SafeTensor *SafetensorsHeader::find(std::string_view name) const {
  const auto found = std::ranges::find(tensors, name, &SafeTensor::name);
  return found == tensors.end() ? nullptr : &*found;
}

SafetensorsHeader parseHeader(const std::string &file,
                              std::span<const std::byte> start,
                              std::int64_t size) {
  const std::string_view json = headerText(file, start, size);
  SafetensorsHeader header;
  HeaderEvents events(file, header);
  readFileJson(file, json, kLengthBytes, events);
  header.dataStart = kLengthBytes + static_cast<std::int64_t>(json.size());

  std::ranges::stable_sort(header.tensors, {}, [](const SafeTensor &tensor) {
    return std::tuple(tensor.begin, tensor.end);
  });
  const SafeTensor *before = nullptr;
  for (const SafeTensor &tensor : header.tensors) {
    checkTensor(file, tensor, before);
    before = &tensor;
  }
  const std::int64_t data = before ? before->end : 0;
  const std::int64_t there = size - header.dataStart;
  if (data != there)
    throw DataError(file, header.dataStart,
                    "the tensors take " + text(data) +
                        " bytes from here, the file has " + text(there) +
                        (data < there
                             ? ": " + text(there - data) + " too many"
                             : ": " + text(data - there) + " are missing"));
  return header;
}

SafetensorsHeader readHeader(const MappedFile &file) {
  file.confirmSize();
  const std::int64_t size = file.size();
  std::vector<std::byte> start(
      static_cast<std::size_t>(std::min(size, kLengthBytes)));
  file.copy(0, std::ssize(start), start.data());
  if (size >= kLengthBytes) {
    std::uint64_t length = 0;
    std::memcpy(&length, start.data(), sizeof(length));
    const std::int64_t most = std::min(size - kLengthBytes, kMostHeaderBytes);
    start.resize(static_cast<std::size_t>(kLengthBytes) +
                 std::min(length, static_cast<std::uint64_t>(most)));
    file.copy(kLengthBytes, std::ssize(start) - kLengthBytes,
              start.data() + kLengthBytes);
  }
  return parseHeader(file.path(), start, size);
}

namespace {

struct Type {
  std::string_view name;
  std::int64_t bits;
};

// Lists the types in the order of the reference. The writer of the reference
// sorts tensors by descending type, so that each tensor is aligned to its
// element size.
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
  // The reference multiplies unsigned numbers in this order. The order
  // determines which shapes overflow.
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

namespace {

std::string quoted(std::string_view text) {
  return base::jsonString(text, base::JsonEscapes::needed);
}

/// Checks the tensors' names, and makes their offsets contiguous.
void place(std::vector<SafeTensor> &tensors) {
  std::unordered_set<std::string_view> names;
  std::int64_t next = 0;
  for (SafeTensor &tensor : tensors) {
    auto refuse = [&](const std::string &why) {
      throw std::invalid_argument("tensor '" + base::shown(tensor.name) +
                                  "': " + why);
    };
    if (tensor.name == kMetadataKey)
      refuse("is not allowed as the name of a tensor");
    if (!names.insert(tensor.name).second)
      refuse("occurs twice");
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
