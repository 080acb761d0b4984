//===- header.cpp - Reads the header of a safetensors file ----------------===//

#include "runtime/safetensors/header.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <tuple>

#include "base/json_text.h"
#include "runtime/data/files.h"

namespace mtplan::runtime {

void readFileJson(const std::string &file, std::string_view text,
                  std::int64_t firstByte, base::JsonEvents &events) {
  // The nesting limit of serde_json, the JSON parser of the reference.
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

//===----------------------------------------------------------------------===//
// The JSON of a header
//===----------------------------------------------------------------------===//

using base::JsonPath;
using base::JsonScalar;
using base::shown;

namespace {

constexpr const char *kContainers[] = {"an object", "an array"};

// Reads the members of each tensor, without checking whether they are
// consistent (see checkTensor). Skips unknown members, like the reference.
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
  // The members of the current tensor that have been read.
  bool hasType = false, hasShape = false;
  int offsets = -1; ///< number of offsets; -1: no data_offsets yet
};

} // namespace

//===----------------------------------------------------------------------===//
// The header
//===----------------------------------------------------------------------===//

namespace {

constexpr std::int64_t kLengthBytes = 8;

std::string text(std::int64_t number) { return std::to_string(number); }

/// Returns the JSON of a header after checking its length and its first byte.
/// \param start  the first bytes of the file
/// \param size  of the file in bytes
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

/// Checks that a tensor's offsets match its type and shape, and that it begins
/// where the previous tensor, `before`, ends.
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
           (tensor.begin < free
                ? ": they overlap"
                : ": " + text(tensor.begin - free) + " bytes of none"));
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

} // namespace mtplan::runtime
