//===- html.h - Text, numbers, tables and axes in HTML ----------*- C++ -*-===//
//
// These functions escape all text from files. The script and the style are
// constants; the script reads text from attributes of elements.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_REPORT_PAGE_HTML_H
#define MTPLAN_TOOLS_REPORT_PAGE_HTML_H

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtplan::tools {

/// Escapes text for elements, and for attributes in single or double quotes.
/// Invalid UTF-8, terminal controls and changes of writing direction become
/// U+FFFD. An ellipsis replaces the text after `most` characters.
std::string escaped(std::string_view text, std::size_t most = 2000);

/// Formats a coordinate with at most one decimal and no exponent.
std::string coordinate(double value);

/// Returns "12.3 s", or "unknown" if the value is not finite.
std::string secondsText(double seconds);
/// Returns "4.56 GiB", or "unknown" if the value is not finite.
std::string bytesAsText(double bytes);

double drawable(double value);

/// Prints a table, and escapes its text. The first column names the row.
class HtmlTable {
public:
  explicit HtmlTable(std::string theCaption) : caption(std::move(theCaption)) {}

  void column(std::string name, bool isNumber = false) {
    columns.push_back({std::move(name), isNumber});
  }
  void number(std::string name) { column(std::move(name), true); }
  /// Adds a row, and drops cells beyond the columns.
  void row(std::vector<std::string> cells) { rows.push_back(std::move(cells)); }

  /// Prints the table; rows beyond kMostRows are counted in a last row.
  std::string print() const;

  /// Prints the table in a foldable element, which is open if the table is
  /// short. When the page is printed, the script opens all folded tables that
  /// are not long.
  std::string fold() const;

  static constexpr std::size_t kMostRows = 600;

private:
  struct Column {
    std::string name;
    bool isNumber;
  };
  std::string caption;
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

struct AxisUnit {
  std::string (*text)(double);
  /// Returns the unit in which ticks are round numbers, for an axis up to
  /// `value`: 1, or the bytes of a KiB, MiB, GiB or TiB.
  double (*step)(double value);
};
extern const AxisUnit kSecondsUnit, kBytesUnit;

/// Returns about seven round numbers from `low` to `high`, which must be
/// finite. Returns nothing unless low < high.
std::vector<double> ticksOf(double low, double high, const AxisUnit &unit);

/// Returns at most `count` evenly spaced indices from 0 to all - 1, including
/// both ends unless `count` is 1.
std::vector<int> evenly(int all, int count);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_PAGE_HTML_H
