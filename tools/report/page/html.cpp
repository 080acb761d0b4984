//===- html.cpp - Text, numbers, tables and axes in HTML ------------------===//

#include "tools/report/page/html.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tools/text/units_text.h"

namespace mtplan::tools {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::string_view kEllipsis = "\xE2\x80\xA6";

// Returns the length in bytes of the first character, or 0 if it is invalid.
// The ranges of valid bytes follow Unicode 15, section 3.9, and exclude
// overlong forms and surrogates.
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

// Returns whether a character is a control character, a line or paragraph
// separator, a bidirectional control or a noncharacter (U+FDD0 to U+FDEF, and
// the last two of each plane).
bool isHarmful(unsigned code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x061C ||
         code == 0x200E || code == 0x200F ||
         (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069) || (code & 0xFFFEU) == 0xFFFE ||
         (code >= 0xFDD0 && code <= 0xFDEF);
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

bool isPlain(double value) { return std::abs(value) < 1e18; }

constexpr std::size_t kShort = 12;     // most rows of a table that starts open
constexpr std::size_t kLong = 128;     // most rows of a table opened to print
constexpr std::size_t kOneLine = 24;   // bytes without a line break
constexpr std::size_t kMostText = 400; // limit of characters in a cell

double decimal(double) { return 1; }

// Returns the largest of 1 byte, KiB, MiB, GiB and TiB that is at most `value`,
// or 1 byte.
double binary(double value) {
  double unit = 1;
  while (unit < 1024.0 * 1024 * 1024 * 1024 && value >= 1024 * unit)
    unit *= 1024;
  return unit;
}

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
  // Traffic per step can far exceed any memory size.
  constexpr double kTib = 1024.0 * 1024 * 1024 * 1024;
  if (bytes < kTib)
    return bytesText({bytes});
  double size = bytes / kTib;
  return fmt::format("{:.{}f} TiB", size, size < 10 ? 2 : size < 100 ? 1 : 0);
}

double drawable(double value) { return std::isfinite(value) ? value : 0.0; }

std::string HtmlTable::print() const {
  std::string text = "<div class=\"wide\"><table>\n<caption>" +
                     escaped(caption) + "</caption>\n<thead><tr>";
  for (const Column &column : columns)
    text += fmt::format("<th scope=\"col\"{}>{}</th>",
                        column.isNumber ? " class=\"n\"" : "",
                        escaped(column.name, kMostText));
  text += "</tr></thead>\n<tbody>\n";
  for (std::size_t r = 0; r < std::min(rows.size(), kMostRows); ++r) {
    text += "<tr>";
    for (std::size_t c = 0; c < columns.size(); ++c) {
      std::string cell =
          c < rows[r].size() ? escaped(rows[r][c], kMostText) : "";
      const char *number = columns[c].isNumber       ? " class=\"n\""
                           : cell.size() <= kOneLine ? " class=\"s\""
                                                     : "";
      text += c == 0 ? fmt::format("<th scope=\"row\"{}>{}</th>", number, cell)
                     : fmt::format("<td{}>{}</td>", number, cell);
    }
    text += "</tr>\n";
  }
  if (rows.size() > kMostRows)
    text += fmt::format(
        "<tr><th scope=\"row\" colspan=\"{}\">and {} more rows</th></tr>\n",
        columns.size(), rows.size() - kMostRows);
  return text + "</tbody></table></div>\n";
}

std::string HtmlTable::fold() const {
  return fmt::format("<details{}><summary>{} as a table, {} row{}</summary>\n",
                     rows.size() <= kShort ? " open=\"\""
                     : rows.size() > kLong ? " class=\"long\""
                                           : "",
                     escaped(caption), rows.size(),
                     rows.size() == 1 ? "" : "s") +
         print() + "</details>\n";
}

const AxisUnit kSecondsUnit = {secondsText, decimal};
const AxisUnit kBytesUnit = {bytesAsText, binary};

std::vector<double> ticksOf(double low, double high, const AxisUnit &unit) {
  constexpr double kAbout = 7;
  if (!(low < high))
    return {};
  double base = unit.step(high);
  double raw = (high - low) / kAbout / base;
  double power = std::pow(10.0, std::floor(std::log10(raw)));
  double step = base * power;
  for (double factor : {1.0, 2.0, 5.0, 10.0})
    if (factor * power >= raw * 0.75) {
      step = base * factor * power;
      break;
    }
  std::vector<double> ticks;
  // If adding `step` did not change `high`, the loop would not end.
  if (!std::isfinite(step) || step <= 0 || high + step == high)
    return ticks;
  double first = std::ceil(low / step - 1e-9);
  for (int i = 0; (first + i) * step <= high + 1e-9 * step; ++i)
    ticks.push_back((first + i) * step + 0.0);
  return ticks;
}

std::vector<int> evenly(int all, int count) {
  std::vector<int> chosen;
  if (count >= all) {
    for (int i = 0; i < all; ++i)
      chosen.push_back(i);
    return chosen;
  }
  if (count == 1)
    return {0};
  for (int i = 0; i < count; ++i)
    chosen.push_back(
        static_cast<int>(static_cast<long long>(i) * (all - 1) / (count - 1)));
  return chosen;
}

} // namespace mtplan::tools
