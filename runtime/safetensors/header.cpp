//===- header.cpp - What a safetensors file says of its tensors -----------===//

#include "runtime/safetensors/header.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <tuple>

#include "runtime/data/data_error.h"
#include "runtime/safetensors/header_events.h"
#include "runtime/safetensors/read_json.h"

namespace mtplan::runtime {

using base::shown;

namespace {

constexpr std::int64_t kLengthBytes = 8;

std::string text(std::int64_t number) { return std::to_string(number); }

/// The JSON, once its length and its first byte are right.
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

/// What the numbers of one tensor say together, and that it begins where the
/// one before ends.
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
