//===- header_events.cpp - The JSON of a header, as tensors ---------------===//

#include "runtime/safetensors/header_events.h"

#include <cstdint>
#include <limits>

#include "runtime/data/data_error.h"

namespace mtplan::runtime {

using base::JsonPath;
using base::JsonScalar;
using base::shown;

namespace {

constexpr const char *kContainers[] = {"an object", "an array"};

} // namespace

HeaderEvents::Part HeaderEvents::partOf(const JsonPath &path) {
  if (path[0].key == kMetadataKey)
    return Part::metadata;
  const std::string &member = path[1].key;
  return member == "dtype"          ? Part::type
         : member == "shape"        ? Part::shape
         : member == "data_offsets" ? Part::offsets
                                    : Part::unknown;
}

void HeaderEvents::refuse(const JsonPath &path, const std::string &needs,
                          const std::string &is) const {
  throw DataError(file, shown(path) + ": needs " + needs + ", is " + is);
}

void HeaderEvents::scalar(const JsonPath &path, const JsonScalar &value) {
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

void HeaderEvents::number(const JsonPath &path, Part part,
                          const JsonScalar &value) {
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

void HeaderEvents::open(const JsonPath &path, bool isArray) {
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

void HeaderEvents::close(const JsonPath &path, bool) {
  if (path.size() == 1 && path[0].key != kMetadataKey)
    finishTensor(path);
}

void HeaderEvents::finishTensor(const JsonPath &path) const {
  const char *missing = !hasType      ? "dtype"
                        : !hasShape   ? "shape"
                        : offsets < 0 ? "data_offsets"
                                      : nullptr;
  if (missing)
    throw DataError(file, shown(path) + ": has no " + missing);
  if (offsets != 2)
    throw DataError(file, shown(path) + ": data_offsets are 2 numbers, here " +
                              std::to_string(offsets));
}

} // namespace mtplan::runtime
