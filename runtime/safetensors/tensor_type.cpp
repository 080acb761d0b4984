//===- tensor_type.cpp - The types of the format, and their sizes ---------===//

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

#include "base/json_events.h"
#include "runtime/safetensors/header.h"

namespace mtplan::runtime {
namespace {

struct Type {
  std::string_view name;
  std::int64_t bits;
};

// The reference's list: its writer puts the last first, so that each tensor
// lies at a multiple of its element.
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
  // As the reference counts: from the left, unsigned, and elements first.
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

} // namespace mtplan::runtime
