//===- html_text.cpp - Text and numbers that are safe in HTML -------------===//

#include "tools/report/page/html_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tools/text/units_text.h"

namespace mtplan::tools {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::string_view kEllipsis = "\xE2\x80\xA6";

// Returns the length in bytes of the first character; 0 if it is invalid. The
// ranges are those of Unicode 15, section 3.9, without overlong forms and
// surrogates.
std::size_t lengthOfFirst(std::string_view text) {
  auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  auto isNext = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
    return byte(i) >= low && byte(i) <= high;
  };
  unsigned first = byte(0);
  if (first < 0x80)
    return 1;
  if (first >= 0xC2 && first <= 0xDF)
    return isNext(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF)
    return isNext(1, first == 0xE0 ? 0xA0 : 0x80,
                  first == 0xED ? 0x9F : 0xBF) &&
                   isNext(2)
               ? 3
               : 0;
  if (first >= 0xF0 && first <= 0xF4)
    return isNext(1, first == 0xF0 ? 0x90 : 0x80,
                  first == 0xF4 ? 0x8F : 0xBF) &&
                   isNext(2) && isNext(3)
               ? 4
               : 0;
  return 0;
}

unsigned codePoint(std::string_view character) {
  unsigned value = static_cast<unsigned char>(character[0]);
  if (character.size() > 1)
    value &= 0x7FU >> character.size();
  for (char next : character.substr(1))
    value = value << 6 | (static_cast<unsigned char>(next) & 0x3FU);
  return value;
}

// Returns whether a character is invisible, or moves its surroundings.
bool isHarmful(unsigned code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || // controls
         code == 0x061C || code == 0x200E || code == 0x200F ||
         (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069) || // directions
         (code & 0xFFFEU) == 0xFFFE || (code >= 0xFDD0 && code <= 0xFDEF);
}

std::string_view escapeOf(char character) {
  switch (character) {
  case '&':
    return "&amp;";
  case '<':
    return "&lt;";
  case '>':
    return "&gt;";
  case '"':
    return "&quot;";
  case '\'':
    return "&#39;";
  case '\t':
  case '\n':
  case '\r':
    return " ";
  default:
    return {};
  }
}

// Returns whether the value is readable without an exponent.
bool isPlain(double value) { return std::abs(value) < 1e18; }

} // namespace

std::string escaped(std::string_view text, std::size_t most) {
  std::string result;
  for (std::size_t count = 0; !text.empty(); ++count) {
    if (count == most)
      return result.append(kEllipsis);
    std::size_t length = lengthOfFirst(text);
    std::string_view character = text.substr(0, length);
    std::string_view escape = length == 1 ? escapeOf(text[0]) : "";
    if (!escape.empty())
      result += escape;
    else if (length == 0 || isHarmful(codePoint(character)))
      result += kReplacement;
    else
      result += character;
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result;
}

std::string coordinate(double value) {
  std::string text =
      fmt::format("{:.1f}", std::clamp(drawable(value), -1e7, 1e7));
  if (text.ends_with(".0"))
    text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string secondsText(double seconds) {
  if (!std::isfinite(seconds))
    return "unknown";
  return isPlain(seconds) ? timeText({seconds})
                          : fmt::format("{:.3g} s", seconds);
}

std::string bytesAsText(double bytes) {
  if (!std::isfinite(bytes))
    return "unknown";
  if (!isPlain(bytes))
    return fmt::format("{:.3g} B", bytes);
  // Traffic per step can be far more than any memory.
  constexpr double kTib = 1024.0 * 1024 * 1024 * 1024;
  if (bytes < kTib)
    return bytesText({bytes});
  double size = bytes / kTib;
  return fmt::format("{:.{}f} TiB", size, size < 10 ? 2 : size < 100 ? 1 : 0);
}

double drawable(double value) { return std::isfinite(value) ? value : 0.0; }

} // namespace mtplan::tools
